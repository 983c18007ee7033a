// The field a message is written in: grows, sends with Enter (never while an input method composes), keeps drafts.
import { AttachmentTray } from "./attach.js";
import { readDraft, readDraftFiles, readEdit, writeDraft, writeDraftFiles, writeEdit } from "./drafts.js";
import { shorten } from "./format.js";
import { isolated } from "../core/dom.js";
import { Voice } from "../voice/voice.js";

const LIMIT = 100000;
const ANSWER_LIMIT = 20000;
const ONCE_READ = "Sent as soon as the files are read.";

export class Composer {
  #conversation = undefined;
  #editing = null;
  #question = null;
  #instead = false; // the reader would rather say something else than answer
  #ready = true;
  #spoken = false; // some of what stands in the field was spoken
  #onceRead = false; // it was sent while files were on their way: it goes when they are there, unless it is changed before
  #busy = false;

  /** handlers: {send(text, replaces, files, spoken), answer(id, text, spoken), stop(), editLast(), announce(text, isUrgent)} */
  constructor(form, handlers) {
    this.form = form;
    this.field = form.querySelector("textarea");
    this.sendButton = form.querySelector("[data-send]");
    this.stopButton = form.querySelector("[data-stop]");
    this.editBar = form.querySelector("[data-edit-bar]");
    this.answerBar = form.querySelector("[data-answer-bar]");
    this.placeholder = this.field.placeholder;
    this.counter = form.querySelector("[data-counter]");
    this.handlers = handlers;
    this.tray = new AttachmentTray(form, { announce: handlers.announce, changed: () => this.#filesChanged(), arrived });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.field.addEventListener("keydown", (event) => this.#onKey(event));
    this.field.addEventListener("input", () => {
      this.#onceRead = false;
      this.#changed();
    });
    this.stopButton.addEventListener("click", () => handlers.stop());
    this.editBar.querySelector("[data-edit-cancel]").addEventListener("click", () => this.cancelEdit());
    this.answerBar.querySelector("button").addEventListener("click", () => this.#answerOrNot());
    this.voice = new Voice(form, this.field, {
      heard: () => (this.#spoken = true),
      submit: () => this.#submit(),
      announce: handlers.announce,
    });
    window.addEventListener("pagehide", () => this.#keepDraft());
  }

  /** Shows the draft of another conversation; the same one again leaves what is being written alone. */
  open(conversation) {
    if (this.#conversation === conversation) return;
    // What was typed before this script had loaded stays.
    const early = this.#conversation === undefined ? this.field.value : "";
    this.#keepDraft();
    this.#conversation = conversation;
    if (early) writeDraft(conversation, early);
    const edit = readEdit(conversation);
    this.#editing = edit?.id ?? null;
    this.#showDraft(edit);
    this.form.dataset.ready = "";
  }

  /** The field shows the edit, or what is being written beside it. */
  #showDraft(edit = null) {
    this.tray.open(placeOf(this.#conversation, this.#editing), edit ? (edit.files ?? []) : readDraftFiles(this.#conversation));
    this.#setText(edit?.text ?? readDraft(this.#conversation));
  }

  /** The new conversation got its id: the draft goes along. */
  moved(conversation) {
    writeDraft(this.#conversation, "");
    writeDraftFiles(this.#conversation, []);
    this.#conversation = conversation;
    this.tray.moved(placeOf(conversation, this.#editing));
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

  /** {id, question} of what Izzy asks: what is written is the answer, unless the reader says otherwise; null for nothing. */
  setQuestion(question) {
    if (this.#question?.id === question?.id) return;
    this.#question = question;
    this.#instead = false;
    this.#show();
  }

  startEdit(messageId, text, files = []) {
    this.#keepDraft();
    this.#editing = messageId;
    this.#showDraft({ text, files });
    this.focus();
  }

  cancelEdit() {
    if (this.#editing === null) return;
    this.tray.discard();
    this.#endEdit();
    this.focus();
  }

  /** Brings back the words of a message that was refused: an edit as an edit, others before what was written since. */
  giveBack(text, { conversation = null, replaces = null, files = [], spoken = false } = {}) {
    const draft = (own) => [text, own].filter((part) => part.trim()).join("\n\n");
    if (conversation !== this.#conversation || this.#editing !== null) {
      writeDraft(conversation, draft(readDraft(conversation)));
      writeDraftFiles(conversation, [...files, ...readDraftFiles(conversation)]);
    } else if (replaces) {
      this.startEdit(replaces, text, files);
    } else {
      this.tray.set([...files, ...this.tray.files]);
      this.#setText(draft(this.field.value));
      this.#spoken = spoken;
      this.#keepDraft();
    }
  }

  focus() {
    this.field.focus();
    this.field.setSelectionRange(this.field.value.length, this.field.value.length);
  }

  get text() {
    return this.field.value;
  }

  get #answers() {
    return this.#question !== null && this.#editing === null && !this.#instead && this.tray.isEmpty;
  }

  get #limit() {
    return this.#answers ? ANSWER_LIMIT : LIMIT;
  }

  #submit() {
    const text = this.field.value.trim();
    const { files } = this.tray;
    if ((!text && this.tray.isEmpty) || this.tray.hasFailed || !this.#ready || text.length > this.#limit) return;
    if (!this.tray.isReady) {
      this.#onceRead = true;
      this.#show();
      this.handlers.announce(ONCE_READ);
      return;
    }
    this.voice.sending();
    const [editing, answered, spoken] = [this.#editing, this.#answers ? this.#question : null, this.#spoken];
    if (editing !== null) {
      this.#endEdit();
    } else {
      writeDraft(this.#conversation, "");
      writeDraftFiles(this.#conversation, []);
      this.tray.clear();
      this.#setText("");
    }
    if (answered) this.handlers.answer(answered.id, text, spoken);
    else this.handlers.send(text, editing, files, spoken);
  }

  /** What was being written before the edit is there again. */
  #endEdit() {
    this.#editing = null;
    writeEdit(this.#conversation, null);
    this.tray.clear();
    this.#showDraft();
  }

  #answerOrNot() {
    this.#instead = !this.#instead;
    this.#show();
    this.focus();
  }

  #onKey(event) {
    // keyCode 229: Safari ends a composition before it tells of the Enter that confirmed it.
    if (event.isComposing || event.keyCode === 229) return;
    if (event.key === "Enter" && !event.shiftKey && !event.altKey) {
      event.preventDefault();
      this.#submit();
    } else if (event.key === "ArrowUp" && this.text === "" && this.#editing === null) {
      if (this.handlers.editLast()) event.preventDefault();
    } else if (event.key === "Escape" && this.#editing !== null) {
      event.stopPropagation();
      this.cancelEdit();
    }
  }

  #filesChanged() {
    const send = this.#onceRead;
    this.#onceRead = false;
    this.#changed();
    if (send) this.#submit();
  }

  #changed() {
    if (this.field.value === "") this.#spoken = false;
    this.#grow();
    this.#show();
    this.#keepDraft();
  }

  #setText(text) {
    this.field.value = text;
    this.#spoken = this.#onceRead = false;
    this.#grow();
    this.#show();
  }

  #keepDraft() {
    if (this.#conversation === undefined) return;
    const { files } = this.tray;
    if (this.#editing === null) {
      writeDraft(this.#conversation, this.field.value);
      writeDraftFiles(this.#conversation, files);
    } else writeEdit(this.#conversation, { id: this.#editing, text: this.field.value, files });
  }

  /** Browsers without field-sizing measure by hand; the style sheet sets the largest height. */
  #grow() {
    if (CSS.supports("field-sizing", "content")) return;
    this.field.style.height = "auto";
    this.field.style.height = `${this.field.scrollHeight}px`;
  }

  #show() {
    const { length } = this.field.value;
    const limit = this.#limit;
    const tooLong = length > limit;
    const hasText = this.field.value.trim() !== "" || !this.tray.isEmpty;
    this.sendButton.disabled = !hasText || this.tray.hasFailed || tooLong || !this.#ready || this.#onceRead;
    this.sendButton.hidden = this.#busy && !hasText;
    this.stopButton.hidden = !this.#busy;
    this.counter.hidden = length < limit * 0.9 && !this.#onceRead;
    this.counter.textContent = this.#onceRead ? ONCE_READ : `${length.toLocaleString()} of ${limit.toLocaleString()} characters`;
    this.counter.classList.toggle("error", tooLong);
    this.editBar.hidden = this.#editing === null;
    this.#showQuestion();
  }
  /** Says what sending does while a question is open. */
  #showQuestion() {
    const shown = this.#question !== null && this.#editing === null;
    const question = shown ? shorten(this.#question.question, 200) : "";
    this.answerBar.hidden = !shown;
    this.answerBar.querySelector("span").textContent = isolated(this.#answers ? `Your answer to “${question}”` : `Goes on without an answer to “${question}”`);
    this.answerBar.querySelector("button").textContent = this.#answers ? "Say something else" : "Answer it";
    this.field.placeholder = this.#answers ? "Your answer" : this.placeholder;
  }
}

/** What is written there: a draft, or a message that is edited. */
function placeOf(conversation, editing) {
  return JSON.stringify([conversation, editing]);
}

/** A file whose sending ended when something else was being written already. */
function arrived(place, file) {
  const [conversation, editing] = JSON.parse(place);
  const edit = readEdit(conversation);
  if (editing === null) writeDraftFiles(conversation, [...readDraftFiles(conversation), file]);
  else if (edit?.id === editing) writeEdit(conversation, { ...edit, files: [...(edit.files ?? []), file] });
}
