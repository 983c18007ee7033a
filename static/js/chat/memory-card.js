// A note on the chat page: read, corrected, deleted and brought back on the spot, through REST.
import { addressed } from "../core/addressing.js";
import { api } from "../core/api.js";
import { h, icon, iconButton } from "../core/dom.js";
import { toastError } from "../core/toasts.js";
import { shorten } from "./format.js";

const SHOWN_CHARS = 1000;

const path = (item, rest = "") => `/api/v1/memories/${encodeURIComponent(item.id ?? item.note_id)}/${rest}`;

/** Why it came up, as a line of its own; its parts in numbers are a hover away. */
export function reasonLine({ reason, parts }) {
  const numbers = Object.entries(parts ?? {}).map(([name, value]) => `${name} ${value}`);
  return reason ? h("p", { class: "memory-reason", title: numbers.join(" · ") || null }, reason) : "";
}

export class MemoryCard {
  /** item: {id or note_id, text, reason?}; `gone` for a note that has just been deleted. */
  constructor(item, { tag = "li", gone = false } = {}) {
    this.item = item;
    this.text = item.text;
    this.element = h(tag, { class: "memory-card" });
    if (gone) this.showGone();
    else this.read();
  }

  read(note = null) {
    const open = h("a", { class: "btn btn-quiet btn-icon btn-small", href: `/memory/${encodeURIComponent(this.item.id ?? this.item.note_id)}/`, "aria-label": "Open this memory", title: "Its page" }, icon("right"));
    const tools = h("div", { class: "memory-tools" }, open, iconButton("edit", "Edit this memory", () => this.edit()), iconButton("trash", "Delete this memory", () => this.remove()));
    this.element.replaceChildren(h("p", { class: "memory-text", dir: "auto" }, addressed(this.text)), reasonLine(this.item), h("div", { class: "memory-foot" }, note ?? this.#mark(), tools));
  }

  #mark() {
    return this.item.faded ? h("span", { class: "badge", title: "Not used for long; it is found and brought up all the same" }, "faded") : h("span");
  }

  async edit() {
    try {
      // What was surfaced may be a part of a long note: the whole note is edited.
      this.text = (await api("GET", path(this.item))).content;
    } catch (error) {
      this.fail(error);
      return;
    }
    const field = h("textarea", { class: "input", "aria-label": "Memory", value: this.text });
    const changed = h("p", { class: "error small", role: "alert", hidden: true });
    const form = h("form", { class: "memory-form" }, field, changed, this.#hint(), h("div", { class: "row" }, h("button", { class: "btn btn-primary btn-small" }, "Save"), h("button", { type: "button", class: "btn btn-quiet btn-small", onclick: () => this.back() }, "Cancel")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.save(field.value.trim(), changed);
    });
    field.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        event.stopPropagation();
        this.back();
      }
    });
    this.element.replaceChildren(form);
    field.focus();
  }

  /** Why the text to edit is worded otherwise than the card. */
  #hint() {
    return addressed(this.text) === this.text ? null : h("p", { class: "faint small" }, "In the text that Izzy keeps you are “the user”.");
  }

  back(note = null) {
    this.read(note);
    this.element.querySelector("button")?.focus();
  }

  /** What others wrote meanwhile does not give way unseen: `changed` says what is there, and saved again it is replaced. */
  async save(content, changed) {
    const before = this.text;
    if (!content || content === before) {
      this.back();
      return;
    }
    const written = await this.write(content);
    changed.hidden = written || this.text === before;
    changed.replaceChildren("Changed elsewhere meanwhile. Save again to replace what is there: ", h("bdi", {}, shorten(this.text, SHOWN_CHARS)));
    if (written) this.back(this.undoNote("Saved", () => this.unsave(before)));
  }

  async unsave(before) {
    const saved = this.text;
    if ((await this.write(before)) || this.text !== saved) this.back();
  }

  /** Whether it was written: not where the note no longer reads as it is known here, which it does then. */
  async write(content) {
    try {
      const { content: present } = await api("GET", path(this.item));
      const known = this.text;
      this.text = present;
      if (present !== known && present !== content) return false;
      this.text = (await api("PATCH", path(this.item), { content })).content ?? content;
      return true;
    } catch (error) {
      toastError(error);
      return false;
    }
  }

  async remove() {
    try {
      await api("DELETE", path(this.item));
    } catch (error) {
      this.fail(error);
      return;
    }
    this.showGone();
    this.element.querySelector("button").focus();
  }

  showGone() {
    const undo = this.undoNote("Deleted", () => this.restore());
    this.element.classList.add("memory-gone");
    this.element.replaceChildren(h("p", { class: "memory-text" }, addressed(this.text)), h("div", { class: "memory-foot" }, undo));
  }

  async restore() {
    try {
      const note = await api("POST", path(this.item, "restore/"));
      this.text = note?.content ?? this.text;
      this.element.classList.remove("memory-gone");
      this.back();
    } catch (error) {
      toastError(error);
    }
  }

  undoNote(words, onclick) {
    return h("span", { class: "memory-note", role: "status" }, `${words} · `, h("button", { type: "button", class: "link-button", onclick }, "Undo"));
  }

  /** A note that is gone since (404) says so; other failures are passing. */
  fail(error) {
    if (error.status === 404) {
      this.element.classList.add("memory-gone");
      this.element.replaceChildren(h("p", { class: "memory-text" }, addressed(this.text)), h("div", { class: "memory-foot" }, h("span", { class: "memory-note" }, "No longer in memory")));
    } else {
      toastError(error);
    }
  }
}
