// A tool call as an expandable card: what it does, live progress, how long it took, input and result.
import { addressed } from "../core/addressing.js";
import { h, icon } from "../core/dom.js";
import { duration, pretty, sendingText, shorten } from "./format.js";
import { inputRows, section } from "./tool-parts.js";
import { describeCall, isStep, noteOf, progressText, waits } from "./tool-words.js";
import { deepParts, deepSteps, isDeep } from "./deep-memory.js";
import { fileParts, isFile } from "./file-card.js";
import { foundParts } from "./found.js";
import { failedRunOf, notRun, ownDoing } from "./not-run.js";
import { webParts } from "./web.js";
import { askCard } from "./ask-cards.js";
import { elapsed } from "./elapsed.js";
import { MemoryCard } from "./memory-card.js";

export class ToolView {
  #call = null;
  #shown = "";
  #ask = null;
  #note = null;
  #since = null; // when this page first saw it run

  constructor(actions) {
    this.actions = actions;
    this.title = h("span", { class: "tool-title" });
    this.detail = h("span", { class: "tool-detail" });
    this.status = h("span", { class: "tool-status" });
    this.icon = h("span", { class: "tool-icon" });
    this.progress = h("div", { class: "tool-progress" });
    this.body = h("div", { class: "tool-body" });
    this.details = h(
      "details",
      { class: "tool" },
      h("summary", {}, this.icon, h("span", { class: "tool-words" }, this.title, this.detail), this.status, h("span", { class: "tool-chevron" }, icon("down"))),
      this.body,
    );
    this.details.addEventListener("toggle", () => this.details.open && this.#renderBody());
    this.answer = h("p", { class: "tool-answer", hidden: true });
    this.covered = h("div", { class: "tool-covered", hidden: true });
    this.element = h("div", { class: "tool-box" }, this.details, this.covered, this.progress, this.answer);
  }

  /** mended: a build that came of it, such as a repair, follows in the turn. */
  update(call, turnState, mended = false) {
    this.#call = call;
    const signature = [call.state, turnState, mended, call.progress.length, call.result.length, call.question, call.answer, pendingText(call, this.actions), JSON.stringify(call.input)].join("|");
    if (signature === this.#shown) return;
    this.#shown = signature;
    this.#renderHead(call);
    this.#renderProgress(call);
    this.#renderAnswer(call);
    if (this.details.open) this.#renderBody();
    this.#renderAsk(call, turnState);
    this.#renderRepair(call, mended);
  }

  /** A tool of the user's own that failed can be given to the builder. */
  #renderRepair(call, mended) {
    const name = mended ? null : failedRunOf(call);
    if (!name) this.repair?.remove();
    if (!name || this.repair?.parentNode) return;
    this.repair = h("a", { class: "tool-repair small", href: `/builds/new/?capability=${encodeURIComponent(name)}&call=${call.id}` }, icon("tool"), "Have it fixed");
    this.element.append(this.repair);
  }

  /** Lets the reader decide again after the server refused the decision. */
  resetAsk() {
    this.#ask?.reset();
  }

  #renderHead(call) {
    const words = describeCall(call);
    this.details.dataset.state = ownDoing(call) ? "unrun" : call.state;
    this.details.classList.toggle("tool-memory", words.isMemory);
    this.title.textContent = words.title;
    this.detail.textContent = words.detail || shorten(noteOf(call)?.gone ? addressed(this.actions.noteText(noteOf(call).item.id)) : "");
    this.icon.replaceChildren(icon(words.icon));
    if (call.state === "running") this.#since ??= Date.now();
    this.status.replaceChildren(...statusOf(call, pendingText(call, this.actions), this.#since));
  }

  /** What a lasting yes of the user covered, and what they answered to a question. */
  #renderAnswer(call) {
    const given = call.answer ?? (call.name === "ask_user" && call.state === "done" ? call.result : "");
    this.covered.hidden = !call.covered;
    if (call.covered) this.covered.replaceChildren(h("p", { class: "faint small" }, call.covered === "always" ? "Always allowed, with this:" : "Allowed in this conversation, with this:"), ...inputRows(call.input));
    this.answer.replaceChildren(h("span", { class: "faint" }, "You: "), given);
    this.answer.hidden = !given;
  }

  #renderProgress(call) {
    const newest = call.state === "running" ? call.progress.at(-1) : null;
    if (newest && isDeep(call)) this.progress.replaceChildren(deepSteps(call));
    else this.progress.textContent = newest ? progressText(newest) : "";
    this.progress.hidden = !newest;
  }

  #renderBody() {
    const call = this.#call;
    const parts = readable(call) ?? [...capabilityPage(call), ...inputRows(call.input), ...outcome(call)];
    if (call.isError && call.result) parts.push(section(notRun(call) ? "Not done" : "Error", notRun(call) ?? pretty(call.result), !notRun(call)));
    const note = noteOf(call);
    if (note && !this.#note) {
      const text = note.item.text || this.actions.noteText(note.item.id) || "This memory";
      this.#note = new MemoryCard({ ...note.item, text }, { tag: "div", gone: note.gone }).element;
    }
    if (waits(call)) parts.unshift(h("p", {}, h("a", { href: "/memory/review/" }, "Look at it on the review page")));
    this.body.replaceChildren(...(this.#note ? [this.#note] : []), ...parts);
  }

  #renderAsk(call, turnState) {
    const wanted = call.state === "asking" && call.asks !== null && call.answer === null && turnState === "waiting";
    if (!wanted) {
      this.#ask?.element.remove();
      this.#ask = null;
    } else if (!this.#ask) {
      this.#ask = askCard(call, this.actions);
      this.element.append(this.#ask.element);
    }
  }
}

/** The parts of a call that has a card of its own; null for any other. */
function readable(call) {
  if (isDeep(call)) return deepParts(call);
  if (isFile(call)) return fileParts(call);
  return webParts(call) ?? foundParts(call) ?? noteParts(call) ?? requestParts(call);
}

/** What was to be built; how that goes is on the card of the build. */
function requestParts(call) {
  if (call.name !== "request_capability" || call.isError || typeof call.input.description !== "string") return null;
  return [h("p", {}, call.input.description)];
}

/** A note that was written or deleted is on its card; what is left to tell is how it is sorted. */
function noteParts(call) {
  if (!noteOf(call)) return null;
  const { content, note_id: id, ...sorted } = call.input;
  return Object.keys(sorted).length > 0 ? inputRows(sorted) : [];
}

/** The way from a run to the capability's own page. */
function capabilityPage(call) {
  if (!call.name.startsWith("cap_")) return [];
  const name = call.name.slice(4);
  return [h("p", {}, h("a", { href: `/capabilities/${encodeURIComponent(name)}/` }, `Open ${name}`))];
}

/** How far a run is only matters until it has ended; what it printed stays. */
function outcome(call) {
  const steps = call.state === "running" ? call.progress : call.progress.filter((data) => !isStep(data));
  const progress = steps.length > 0 ? [section("Progress", steps.map(progressText).join("\n"))] : [];
  return call.result && !call.isError ? [...progress, section("Result", pretty(call.result))] : progress;
}

/** How far an answer is that the turn has not taken up yet; "" for none. */
function pendingText(call, { isConnected }) {
  return call.state === "asking" && call.answer !== null ? sendingText(isConnected()) : "";
}

function statusOf(call, pending, since) {
  if (pending) return [h("span", {}, pending)];
  if (call.state === "running") return [elapsed("", since), h("span", { class: "spinner", "aria-hidden": "true" }), h("span", { class: "visually-hidden" }, "running")];
  if (call.state === "asking") return [h("span", { class: "badge badge-warn" }, "waits for you")];
  if (call.state === "open") return [h("span", { class: "faint" }, "next")];
  if (ownDoing(call)) return [h("span", {}, ownDoing(call))];
  const time = h("span", { class: "tool-time" }, duration(call.durationMs));
  if (call.state === "error") return [time, h("span", { class: "tool-failed" }, icon("alert"), h("span", { class: "visually-hidden" }, "failed"))];
  return [time, h("span", { class: "tool-ok" }, icon("check"), h("span", { class: "visually-hidden" }, "done"))];
}
