// One turn: the user's message, and everything Izzy does to answer it.
import { h, icon, iconButton } from "../core/dom.js";
import { copyFrom } from "../core/copy.js";
import { attachedList } from "./attached-view.js";
import { sentencesOf } from "../voice/sentences.js";
import { voiceSettings } from "../voice/settings.js";
import { readAloudButton } from "../voice/speaker.js";
import { BuildView } from "./build-view.js";
import { elapsed } from "./elapsed.js";
import { moment, sendingText, usageText } from "./format.js";
import { ENDED } from "./state.js";
import { summedUp } from "./summed-up.js";
import { SurfacedView } from "./surfaced.js";
import { TextView } from "./text-view.js";
import { ToolView } from "./tool-view.js";
import { versionSwitch } from "./versions.js";

const LONG_CHARS = 1500;
const LONG_LINES = 25;

export class TurnView {
  #segments = new Map();
  #foot = "";

  /** actions: {decide, isConnected(), say(text), wentOn(turn, since), retry(turn), edit(turn), drawn(turn, view)} */
  constructor(turn, actions) {
    this.turn = turn;
    this.actions = actions;
    this.user = h("div", { class: "user" });
    this.flow = h("div", { class: "flow" });
    this.status = h("div", { class: "turn-status" });
    this.foot = h("div", { class: "turn-foot" });
    this.surfaced = new SurfacedView();
    this.answer = h("div", { class: "answer" }, h("h3", { class: "visually-hidden" }, "Izzy"), this.flow, this.status, this.foot);
    this.summed = h("div", { class: "summed-up-box", hidden: true });
    this.element = h("article", { class: "turn", dataset: { turn: turn.key } }, this.summed, this.user, h("div", { class: "answer-row" }, this.answer, this.surfaced.element));
  }

  /** isLast: only the newest turn can be tried again. */
  update(isLast) {
    const { turn } = this;
    this.element.dataset.state = turn.state;
    if (turn.id) this.element.dataset.id = turn.id;
    this.#updateSummary();
    this.#updateUser();
    this.surfaced.update(turn.memories, isLast);
    this.#updateFlow();
    this.#updateStatus();
    this.#updateFoot(isLast);
  }

  /** The server refused a decision or an answer: let it be given again. */
  resetAsks() {
    for (const view of this.#segments.values()) view.resetAsk?.();
  }

  plainText() {
    return this.turn.segments.filter((segment) => segment.type === "text").map((segment) => segment.text.trim()).filter(Boolean).join("\n\n");
  }

  /** The answer as it is spoken. */
  sentences() {
    const { language } = voiceSettings();
    return [...this.flow.querySelectorAll(".prose")].flatMap((prose) => sentencesOf(prose, language));
  }

  #updateSummary() {
    const { summary } = this.turn;
    if (this.shownSummary === summary) return;
    this.shownSummary = summary;
    this.summed.hidden = !summary;
    this.summed.replaceChildren(...(summary ? [summedUp(summary)] : []));
  }

  #updateUser() {
    const { turn } = this;
    this.user.hidden = turn.user === null;
    if (turn.user === null) return;
    const pending = turn.state === "sending" ? sendingText(this.actions.isConnected()) : "";
    const files = turn.user.attachments ?? [];
    const signature = [turn.user.text, turn.user.id, turn.user.at, pending, ...files.map((file) => file.id), ...turn.versions].join("\u0000");
    if (this.user.signature === signature) return;
    this.user.signature = signature;
    const copy = iconButton("copy", "Copy message", () => copyFrom(copy, turn.user.text));
    const edit = turn.user.id ? iconButton("edit", "Edit and send again", () => this.actions.edit(turn), { dataset: { edit: "" } }) : null;
    const time = moment(turn.user.at);
    const bubble = turn.user.text ? folded(turn.user.text) : "";
    const speaker = turn.user.speaker ? h("p", { class: "speaker" }, turn.user.speaker) : null;
    const sending = pending ? h("span", { class: "sending" }, pending) : null;
    this.user.replaceChildren(...(speaker ? [speaker] : [h("h3", { class: "visually-hidden" }, "You")]), ...[attachedList(files)].filter(Boolean), ...[bubble].flat(), h("div", { class: "message-actions" }, sending, time, copy, edit, turn.versions.length > 1 ? versionSwitch(turn, this.actions.choose) : null));
  }

  #updateFlow() {
    const gone = [...this.#segments].filter(([segment]) => !this.turn.segments.includes(segment));
    const hadFocus = gone.some(([, view]) => view.hasFocus);
    for (const [segment, view] of gone) {
      view.element.remove();
      this.#segments.delete(segment);
    }
    this.turn.segments.forEach((segment, index) => {
      let view = this.#segments.get(segment);
      if (!view) {
        view = this.#viewFor(segment);
        this.#segments.set(segment, view);
        this.flow.insertBefore(view.element, this.flow.children[index] ?? null);
        view.takesFocus = hadFocus && segment.type === "build";
      }
      const mended = this.turn.segments.slice(index + 1).some((later) => later.type === "build");
      view.update(segment, this.turn.state, mended);
      // Not before it has been drawn: until then the card hides what it does not know.
      if (view.takesFocus) view.focus();
      view.takesFocus = false;
    });
  }

  #viewFor(segment) {
    if (segment.type === "text") return new TextView(segment.speaker);
    if (segment.type !== "build") return new ToolView(this.actions);
    return new BuildView(segment, { ...this.actions, wentOn: (since) => this.actions.wentOn(this.turn, since) });
  }

  /** Something always shows that Izzy is at work: dots until the first word, then the text itself. */
  #updateStatus() {
    const { turn } = this;
    const last = turn.segments.at(-1);
    const silent = !last || last.type === "build" || (last.type === "tool" && last.state !== "running" && last.state !== "asking");
    let content = null;
    if (turn.state === "queued") content = h("span", { class: "working" }, dots(), h("span", {}, "Waiting for its turn"), this.#untilHeard(last));
    else if (turn.state === "running" && turn.retry) content = h("span", { class: "working" }, dots(), h("span", {}, `${turn.retry.message} `), this.#untilRetry());
    else if (turn.state === "running" && silent) content = h("span", { class: "working" }, dots(), h("span", { class: "visually-hidden" }, "Izzy is working"), this.#untilHeard(last));
    const signature = turn.state === "running" && turn.retry ? turn.retry.at : content && (silent || turn.state === "queued") ? `${turn.state} ${turn.segments.length} ${turn.summing}` : (content?.textContent ?? "");
    if (this.status.dataset.shown === signature) return;
    this.status.dataset.shown = signature;
    this.status.replaceChildren(...(content ? [content] : []));
  }

  #beforeIt() {
    const before = this.element.previousElementSibling;
    return before?.matches("[data-state=running], [data-state=queued]") ? "the answer before it is still being written" : "other conversations are answered first";
  }

  /** A wait of several seconds says what it waits for, and how long by now. */
  #untilHeard(last) {
    const words = this.turn.state === "queued" ? this.#beforeIt() : this.turn.summing ? "Summing up the earlier part of this conversation" : last?.type === "tool" ? "The model reads what came of it" : "Waiting for the model";
    return elapsed(words);
  }

  /** Counts down to the next try. */
  #untilRetry() {
    const { at, seconds } = this.turn.retry;
    const element = h("span");
    const tick = () => {
      const left = Math.ceil(Math.min(seconds, (Date.parse(at) - Date.now()) / 1000));
      element.textContent = left > 0 ? `Trying again in ${left} s` : "Trying again…";
      if (left > 0) setTimeout(() => element.isConnected && tick(), 1000);
    };
    tick();
    return element;
  }

  #updateFoot(isLast) {
    const { turn } = this;
    const signature = [turn.state, isLast, turn.error?.message, turn.notice?.message, turn.usage?.output_tokens].join("|");
    if (signature === this.#foot) return;
    this.#foot = signature;
    this.foot.replaceChildren(...this.#outcome(isLast), ...(ENDED.has(turn.state) ? [this.#actions(isLast)] : []));
  }

  #outcome(canRetry) {
    const { turn } = this;
    const retry = canRetry && turn.user ? h("button", { type: "button", class: "btn btn-small", dataset: { retry: "" }, onclick: () => this.actions.retry(turn) }, icon("retry"), "Try again") : null;
    if (turn.state === "stopped") return [line("stop", "You stopped this answer.")];
    if (turn.state === "interrupted") return [notice("warn", turn.error?.message || "The server stopped while Izzy was answering. What was there is kept.", retry)];
    if (turn.state === "failed") return [notice("danger", turn.error?.message || "Something went wrong.", retry)];
    return turn.notice ? [line("info", turn.notice.message)] : [];
  }

  #actions(canRetry) {
    const text = this.plainText();
    const copy = text ? iconButton("copy", "Copy answer", () => copyFrom(copy, this.plainText())) : null;
    const isNoticed = this.turn.state === "failed" || this.turn.state === "interrupted";
    const retry = canRetry && this.turn.user && !isNoticed ? iconButton("retry", "Try again", () => this.actions.retry(this.turn), { dataset: { retry: "" } }) : null;
    const aloud = text ? readAloudButton(() => this.sentences(), voiceSettings) : null;
    const usage = usageText(this.turn.usage);
    return h("div", { class: "message-actions" }, copy, aloud, retry, usage ? h("span", { class: "usage" }, usage) : null);
  }
}

/** The user's words; a very long message shows its beginning until it is asked for. */
function folded(text) {
  const words = h("div", { class: "bubble", dir: "auto" }, text);
  if (text.length < LONG_CHARS && text.split("\n").length < LONG_LINES) return words;
  const more = h("button", { type: "button", class: "link-button bubble-more", "aria-expanded": "false" }, "Show the whole message");
  words.dataset.folded = "";
  more.addEventListener("click", () => {
    const open = words.toggleAttribute("data-folded") === false;
    more.textContent = open ? "Show less" : "Show the whole message";
    more.setAttribute("aria-expanded", String(open));
  });
  return [words, more];
}

function dots() {
  return h("span", { class: "dots", "aria-hidden": "true" }, h("i"), h("i"), h("i"));
}

function line(name, text) {
  return h("p", { class: "turn-line" }, icon(name), text);
}

function notice(kind, text, action) {
  return h("div", { class: `notice notice-${kind}` }, icon("alert"), h("div", { class: "grow" }, text), action);
}
