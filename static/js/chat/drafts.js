// What is typed but not sent, and what is sent but not confirmed, outlives a reload of this tab.
const DRAFT = "izzy-draft-";
const OUTBOX = "izzy-outbox";

function read(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key, value) {
  try {
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  } catch {
    // Storage is full or blocked: drafts last as long as the page.
  }
}

export const readDraft = (conversation) => read(DRAFT + (conversation ?? "new")) ?? "";
export const writeDraft = (conversation, text) => write(DRAFT + (conversation ?? "new"), text);

/** Frames of messages the server has not confirmed; sending one twice is safe, its client_id names it. */
export class Outbox {
  #frames = parseList(read(OUTBOX));

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

  #keep() {
    write(OUTBOX, this.#frames.length > 0 ? JSON.stringify(this.#frames) : "");
  }
}

function parseList(text) {
  try {
    const list = JSON.parse(text ?? "[]");
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}
