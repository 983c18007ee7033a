// The card of one build: how far it is, what it asks, and what can be done with it. Messages come from outside, by `add`; what
// came before the page was opened is fetched.
import { api } from "../core/api.js";
import { h, icon } from "../core/dom.js";
import { uuid } from "../core/ids.js";
import { toast, toastError } from "../core/toasts.js";
import { askOf, permissionList } from "./ask.js";
import { answerTo, isLate, isOpen, linesOf, mayChange, nowText, openQuestions, stateOf, titleOf, permissionNote } from "./words.js";

const FALLBACK_SECONDS = 5;

// Who comes back from the page of secrets, or from another tab, finds the cards as things are. One listener for all: one of
// each card's own would keep the cards of every conversation that was ever opened.
const cards = new WeakMap();
document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  for (const element of document.querySelectorAll(".build")) {
    const card = cards.get(element);
    if (card && mayChange(card.state)) card.refresh();
  }
});

export class BuildCard {
  #messages = new Map();
  #build = null;
  #asks = new Map();
  #timer = null;
  busy = false; // the reader did something in it, and it is not known yet what came of that

  /** actions: {say(text), wentOn(since)} where there is a conversation to say something in, and whether it has gone on since a
   * time; details: a link to the build's page, where the reason of a failure stands in full and not in its first line. */
  constructor(id, actions = {}, { details = true } = {}) {
    this.id = id;
    this.actions = actions;
    this.whole = !details;
    this.icon = h("span", { class: "tool-icon" }, icon("tool"));
    const titleId = `build-title-${uuid()}`;
    this.title = h("h3", { class: "build-title", id: titleId, tabindex: "-1" }, "Building a capability");
    this.status = h("span", { class: "tool-status" });
    this.now = h("p", { class: "build-now" });
    this.steps = h("ol", { class: "build-steps" });
    this.history = h("details", { class: "build-history" }, h("summary", {}, "Steps"), this.steps);
    this.asks = h("div", { class: "build-asks" });
    this.permissions = h("div", { class: "build-permissions", hidden: true });
    this.foot = h("div", { class: "build-foot" });
    this.live = h("p", { class: "visually-hidden", role: "status" });
    this.link = details ? h("a", { class: "small", href: `/builds/${id}/` }, "Details") : null;
    this.element = h(
      "section",
      { class: "build", dataset: { build: id }, "aria-labelledby": titleId },
      h("div", { class: "build-head" }, this.icon, this.title, this.status),
      this.now,
      this.asks,
      this.permissions,
      this.history,
      this.foot,
      this.live,
    );
    // Until it is known how the build stands, the card keeps its place and says nothing that may be wrong.
    this.element.classList.add("build-unknown");
    this.#draw();
    this.refresh();
    cards.set(this.element, this);
  }

  get state() {
    return stateOf(this.#ordered(), this.#build?.state);
  }

  /** One message, in any order and as often as it likes to come. */
  add(message) {
    if (this.#messages.has(message.number)) return;
    this.#messages.set(message.number, message);
    this.#draw();
    const hasMore = this.whole && message.type === "error"; // the build has its reason in full
    if (!this.#build || hasMore || this.#messages.size < message.number) this.refresh();
  }

  /** The conversation around it has changed. */
  update() {
    this.#drawFoot(this.state);
  }

  /** Fetches what the card does not know yet. */
  refresh() {
    this.stale = true;
    this.loading ??= this.#load().finally(() => {
      this.loading = null;
      this.#watch();
    });
    return this.loading;
  }

  /** Once more where it was wanted while an answer was under way: that one may be older than what was done since. */
  async #load() {
    while (this.stale) {
      this.stale = false;
      try {
        this.#build = await api("GET", `/api/v1/builds/${this.id}/?transcript=false`);
        for (const message of this.#build.messages) this.#messages.set(message.number, message);
        this.#draw();
      } catch (error) {
        if (error.status === 404) this.#gone();
      }
    }
  }

  /** Without an event for a while the rows are asked: the card never stands still while the build goes on. */
  #watch() {
    clearTimeout(this.#timer);
    if (this.#isMoving() && !this.gone) this.#timer = setTimeout(() => this.element.isConnected && this.refresh(), FALLBACK_SECONDS * 1000);
  }

  #isMoving() {
    const { state } = this;
    return isOpen(state) || state === "testing" || (state === "secrets" && this.#build?.missing_secrets.length === 0);
  }

  #ordered() {
    return [...this.#messages.values()].sort((a, b) => a.number - b.number);
  }

  #name() {
    return this.#build?.name ?? "a capability";
  }

  #draw() {
    const messages = this.#ordered();
    if (this.#build || messages.length > 0) this.element.classList.remove("build-unknown");
    const { state } = this;
    const lines = linesOf(messages).filter((line) => !(this.whole && line.kind === "error"));
    this.element.dataset.state = state;
    this.title.textContent = titleOf(state, this.#name());
    this.status.replaceChildren(...statusOf(state, messages.at(-1)?.payload.version ?? this.#build?.version));
    const last = lines.at(-1);
    this.now.textContent = nowText(state, last, this.#build, messages.at(-1), this.whole);
    this.now.hidden = !this.now.textContent;
    this.steps.replaceChildren(...lines.map((line) => h("li", { dataset: { kind: line.kind } }, line.text)));
    this.history.hidden = lines.length < 2;
    this.#drawAsks(isOpen(state) ? openQuestions(messages) : [], messages);
    this.#drawPermissions(state, messages.at(-1));
    this.#drawFoot(state);
    this.#speak(isOpen(state) ? openQuestions(messages) : []);
  }

  /** For those who do not see the card: a new state and a new question, not how things stood when it was opened. */
  #speak(questions) {
    if (!this.#build && this.#messages.size === 0) return;
    const words = questions.length > 0 ? `The builder asks: ${questions.at(-1).payload.text}` : this.title.textContent;
    if (this.spoken !== undefined && this.spoken !== words) this.live.textContent = words;
    this.spoken = words;
  }

  /** A question that is still open keeps its element, and with it what is being typed; so does one that was answered elsewhere
   * while something was typed here. */
  #drawAsks(questions, messages) {
    const wanted = new Set(questions.map((question) => question.id));
    for (const [id, ask] of this.#asks) {
      if (!wanted.has(id) && !ask.keep(answerTo(id, messages))) this.#putAway(id);
    }
    for (const question of questions) {
      if (!this.#asks.has(question.id)) {
        const dismiss = () => {
          this.#putAway(question.id);
          this.focus();
        };
        const ask = askOf(question, (answer) => this.#post("answer", answer), dismiss);
        this.#asks.set(question.id, ask);
        this.asks.append(ask.element);
      }
      this.#asks.get(question.id).update({ missing: this.#build?.missing_secrets ?? [], late: isLate(question, messages) });
    }
    this.asks.hidden = this.#asks.size === 0;
  }

  #putAway(id) {
    this.#asks.get(id).element.remove();
    this.#asks.delete(id);
    this.asks.hidden = this.#asks.size === 0;
  }

  /** What a version that is built asks for before it may run. */
  #drawPermissions(state, last) {
    const permissions = ["approval", "secrets"].includes(state) ? last.payload : null;
    this.permissions.hidden = !permissions;
    const signature = permissions && JSON.stringify([state, permissions, this.#build?.missing_secrets]);
    if (!permissions || this.permissions.dataset.shown === signature) return; // a link that is replaced under the pointer loses the click
    this.permissions.dataset.shown = signature;
    this.permissions.replaceChildren(h("p", { class: "small" }, state === "approval" ? "It asks to" : "It is allowed to"), permissionList(permissions, this.#build?.missing_secrets ?? []), h("p", { class: "muted small" }, permissionNote(permissions)));
  }

  #drawFoot(state) {
    const last = this.#ordered().at(-1);
    const mayUse = state === "done" && this.actions.say && this.#build?.request && !this.actions.wentOn(last?.created_at ?? "");
    const ended = (state === "failed" || state === "cancelled") && this.#build;
    const signature = `${state}|${this.#build !== null}|${mayUse}|${this.#build?.later ?? ""}`;
    if (this.foot.dataset.shown === signature) return;
    this.foot.dataset.shown = signature;
    const parts = [];
    if (isOpen(state)) parts.push(this.#button("Cancel", "btn btn-small", () => this.#post("cancel")));
    if (state === "approval") parts.push(this.#button("Approve", "btn btn-small btn-primary", () => this.#approve()));
    if (mayUse) parts.push(this.#button("Use it for what I asked", "btn btn-small", async () => this.actions.say(`Use ${this.#name()} for what I asked.`)));
    if (ended && !this.#build.later) parts.push(this.#button("Try again", "btn btn-small", () => this.#again()));
    if (ended && this.#build.later) parts.push(h("a", { class: "btn btn-small", href: `/builds/${this.#build.later}/` }, "The next attempt"));
    if (state === "failing") parts.push(h("a", { class: "btn btn-small", href: `/builds/new/?capability=${this.#name()}&execution=last` }, icon("tool"), "Have it fixed"));
    if (["done", "approval", "secrets", "testing", "failing", "replaced"].includes(state)) parts.push(h("a", { class: "btn btn-small", href: `/capabilities/${this.#name()}/` }, "Open it"));
    this.foot.replaceChildren(...parts, h("span", { class: "grow" }), ...(this.link ? [this.link] : []));
  }

  #button(label, kind, work) {
    const button = h("button", { type: "button", class: kind }, label);
    button.addEventListener("click", async () => {
      const done = work();
      button.disabled = true;
      await done.catch(() => {
        button.disabled = false;
      });
    });
    return button;
  }

  #post(what, body = {}) {
    return this.#do(() => api("POST", `/api/v1/builds/${this.id}/${what}/`, body));
  }

  #approve() {
    return this.#do(() => api("POST", `/api/v1/capabilities/${this.#name()}/approve/`, { version: this.#ordered().at(-1).payload.version }));
  }

  #again() {
    return this.#do(async () => {
      const answer = await api("POST", `/api/v1/builds/${this.id}/retry/`, {});
      // In a conversation the new build's first message brings its card.
      if (answer.build_id && !this.actions.say) location.assign(`/builds/${answer.build_id}/`);
      if (!answer.build_id) toast(`${this.#name()} is there already.`);
    });
  }

  /** Does what the reader wants and shows how things are then. Its button may be gone with it: the card keeps the focus. */
  async #do(work) {
    this.busy = this.element.contains(document.activeElement);
    this.element.ariaBusy = "true";
    try {
      await work();
    } catch (error) {
      toastError(error);
      throw error;
    } finally {
      document.dispatchEvent(new CustomEvent("izzy:answered"));
      await this.refresh();
      if (this.busy && this.element.isConnected && document.activeElement === document.body) this.focus();
      this.busy = false;
      this.element.ariaBusy = null;
    }
  }

  /** To what it asks next, else to its title. */
  focus() {
    (this.asks.querySelector("textarea, button") ?? this.title).focus({ preventScroll: true });
  }

  #gone() {
    this.element.classList.remove("build-unknown");
    this.gone = true;
    this.now.textContent = "This build was deleted.";
    this.now.hidden = false;
    this.foot.replaceChildren();
  }
}

function statusOf(state, version) {
  if (isOpen(state)) return [h("span", { class: "spinner", "aria-hidden": "true" }), h("span", { class: "visually-hidden" }, "being built")];
  if (state === "failed") return [h("span", { class: "badge badge-danger" }, "failed")];
  if (state === "cancelled") return [h("span", { class: "badge" }, "cancelled")];
  if (state === "approval" || state === "secrets") return [h("span", { class: "badge badge-warn" }, "waits for you")];
  if (state === "testing") return [h("span", { class: "spinner", "aria-hidden": "true" }), h("span", { class: "visually-hidden" }, "being tested")];
  if (state === "failing") return [h("span", { class: "badge badge-danger" }, "failed its test")];
  if (state === "replaced") return [h("span", { class: "badge" }, "replaced")];
  return [h("span", { class: "badge badge-ok" }, icon("check"), version > 1 ? `version ${version}` : "ready")];
}
