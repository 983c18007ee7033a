// What is typed but not sent, and what is sent but not confirmed, outlives a reload of this tab, for whoever wrote it: nothing of
// it is left once somebody else has signed in here.
const KEPT = "izzy-kept-";
const OWN = `${KEPT}${document.body.dataset.user}-`;
const DRAFT = `${OWN}draft-`;
const FILES = `${OWN}files-`;
const EDIT = `${OWN}edit-`;
const OUTBOX = `${OWN}outbox`;
const unstored = new Map(); // where storage is full or blocked, drafts last as long as the page

try {
  for (const key of Object.keys(sessionStorage)) if (key.startsWith(KEPT) && !key.startsWith(OWN)) sessionStorage.removeItem(key);
} catch {
  // Storage is blocked, so nothing of anybody is in it.
}

function read(key) {
  try {
    return unstored.get(key) ?? sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, value) {
  unstored.delete(key);
  try {
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  } catch {
    unstored.set(key, value);
  }
}

export const readDraft = (conversation) => read(DRAFT + (conversation ?? "new")) ?? "";
export const writeDraft = (conversation, text) => write(DRAFT + (conversation ?? "new"), text);

/** The files that go with the draft, as the server has them. */
export const readDraftFiles = (conversation) => parse(read(FILES + (conversation ?? "new"))) ?? [];
export const writeDraftFiles = (conversation, files) => write(FILES + (conversation ?? "new"), files.length > 0 ? JSON.stringify(files) : "");

/** The message that is being edited, beside the draft: {id, text, files}, null for none. */
export const readEdit = (conversation) => parse(read(EDIT + conversation));
export const writeEdit = (conversation, edit) => write(EDIT + conversation, edit && JSON.stringify(edit));

/** Frames of messages and answers the server has not confirmed; sending one twice is safe, its client_id names it. */
export class Outbox {
  #frames = [parse(read(OUTBOX)) ?? []].flat();

  get frames() {
    return [...this.#frames];
  }

  add(frame) {
    this.#frames.push(frame);
    this.#keep();
  }

  remove(clientId) {
    const frame = this.#frames.find((item) => item.client_id === clientId) ?? null;
    this.#frames = this.#frames.filter((item) => item !== frame);
    this.#keep();
    return frame;
  }

  /** The question has its answer, this one or another tab's: what was sent to it from here, null for nothing. */
  answered(id) {
    const frame = this.#frames.find((item) => item.type === "answer" && item.id === id);
    return frame ? this.remove(frame.client_id) : null;
  }

  #keep() {
    write(OUTBOX, this.#frames.length > 0 ? JSON.stringify(this.#frames) : "");
  }
}

function parse(text) {
  try {
    return JSON.parse(text ?? "null");
  } catch {
    return null;
  }
}
