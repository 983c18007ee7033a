// The field a message is written in: grows, sends with Enter (never while an input method composes), keeps drafts.
import { readDraft, writeDraft } from "./drafts.js";
import { startDictation } from "./speech.js";

const LIMIT = 100000;

export class Composer {
  #conversation = undefined;
  #editing = null;
  #ready = true;
  #busy = false;

  /** handlers: {send(text, replaces) → bool, stop(), editLast()} */
  constructor(form, handlers) {
    this.form = form;
    this.field = form.querySelector("textarea");
    this.sendButton = form.querySelector("[data-send]");
    this.stopButton = form.querySelector("[data-stop]");
    this.editBar = form.querySelector("[data-edit-bar]");
    this.counter = form.querySelector("[data-counter]");
    this.handlers = handlers;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.field.addEventListener("keydown", (event) => this.#onKey(event));
    this.field.addEventListener("input", () => this.#changed());
    this.stopButton.addEventListener("click", () => handlers.stop());
    this.editBar.querySelector("[data-edit-cancel]").addEventListener("click", () => this.cancelEdit());
    this.stopDictation = startDictation(form.querySelector("[data-dictate]"), this.field);
    window.addEventListener("pagehide", () => this.#keepDraft());
  }

  /** Shows the draft of another conversation; the same one again leaves what is being written alone. */
  open(conversation) {
    if (this.#conversation === conversation) return;
    // What was typed before this script had loaded stays.
    const early = this.#conversation === undefined ? this.field.value : "";
    this.#keepDraft();
    this.#conversation = conversation;
    this.#editing = null;
    this.editBar.hidden = true;
    this.#setText(early || readDraft(conversation));
    this.form.dataset.ready = "";
  }

  /** The new conversation got its id: the draft goes along. */
  moved(conversation) {
    writeDraft(this.#conversation, "");
    this.#conversation = conversation;
    this.#keepDraft();
  }

  setBusy(busy) {
    this.#busy = busy;
    this.#show();
  }

  /** False while a message cannot be taken (signed out, or the first message is not confirmed yet). */
  setReady(ready) {
    this.#ready = ready;
    this.#show();
  }

  startEdit(messageId, text) {
    this.#keepDraft();
    this.#editing = messageId;
    this.editBar.hidden = false;
    this.#setText(text);
    this.focus();
  }

  cancelEdit() {
    if (this.#editing === null) return;
    this.#editing = null;
    this.editBar.hidden = true;
    this.#setText(readDraft(this.#conversation));
    this.focus();
  }

  /** Brings back the words of a message that was refused, unless something new is already there. */
  giveBack(text) {
    if (this.field.value.trim() === "") this.#setText(text);
  }

  focus() {
    this.field.focus();
    this.field.setSelectionRange(this.field.value.length, this.field.value.length);
  }

  get isEmpty() {
    return this.field.value === "";
  }

  #submit() {
    const text = this.field.value.trim();
    if (!text || !this.#ready || text.length > LIMIT) return;
    this.stopDictation();
    if (!this.handlers.send(text, this.#editing)) return;
    this.#editing = null;
    this.editBar.hidden = true;
    writeDraft(this.#conversation, "");
    this.#setText("");
  }

  #onKey(event) {
    // keyCode 229: Safari ends a composition before it tells of the Enter that confirmed it.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.#submit();
    } else if (event.key === "ArrowUp" && this.isEmpty && this.#editing === null) {
      if (this.handlers.editLast()) event.preventDefault();
    } else if (event.key === "Escape" && this.#editing !== null) {
      event.stopPropagation();
      this.cancelEdit();
    }
  }

  #changed() {
    this.#grow();
    this.#show();
    if (this.#editing === null) writeDraft(this.#conversation, this.field.value);
  }

  #setText(text) {
    this.field.value = text;
    this.#grow();
    this.#show();
  }

  #keepDraft() {
    if (this.#editing === null && this.#conversation !== undefined) writeDraft(this.#conversation, this.field.value);
  }

  /** Browsers without field-sizing measure by hand; the style sheet sets the largest height. */
  #grow() {
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  #show() {
    const { length } = this.field.value;
    const tooLong = length > LIMIT;
    const hasText = this.field.value.trim() !== "";
    this.sendButton.disabled = !hasText || tooLong || !this.#ready;
    this.sendButton.hidden = this.#busy && !hasText;
    this.stopButton.hidden = !this.#busy;
    this.counter.hidden = length < LIMIT * 0.9;
    this.counter.textContent = `${length.toLocaleString()} of ${LIMIT.toLocaleString()} characters`;
    this.counter.classList.toggle("error", tooLong);
  }
}
