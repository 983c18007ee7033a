// The memories that Izzy had before it while answering: each can be corrected or deleted on the spot, and undone.
import { api } from "../core/api.js";
import { h, icon, iconButton } from "../core/dom.js";
import { toastError } from "../core/toasts.js";

const wide = window.matchMedia("(min-width: 87.5rem)");

const path = (item, rest = "") => `/api/v1/memories/${encodeURIComponent(item.id ?? item.note_id)}/${rest}`;

export class SurfacedView {
  #shown = "";

  constructor() {
    this.count = h("span");
    this.list = h("ul", { class: "surfaced-list" });
    this.details = h("details", { class: "surfaced-box" }, h("summary", {}, icon("memory"), this.count, h("span", { class: "tool-chevron" }, icon("down"))), this.list);
    this.details.open = wide.matches;
    wide.addEventListener("change", () => {
      this.details.open = wide.matches;
    });
    this.element = h("aside", { class: "surfaced", "aria-label": "Memories used for this answer", hidden: true }, this.details);
  }

  update(items) {
    const signature = items.map((item) => item.id ?? item.note_id).join();
    if (signature === this.#shown) return;
    this.#shown = signature;
    this.element.hidden = items.length === 0;
    this.count.textContent = items.length === 1 ? "1 memory used" : `${items.length} memories used`;
    this.list.replaceChildren(...items.map((item) => new MemoryCard(item).element));
  }
}

class MemoryCard {
  constructor(item) {
    this.item = item;
    this.text = item.text;
    this.element = h("li", { class: "memory-card" });
    this.read();
  }

  read(note = null) {
    const tools = h("div", { class: "memory-tools" }, iconButton("edit", "Edit this memory", () => this.edit()), iconButton("trash", "Delete this memory", () => this.remove()));
    this.element.replaceChildren(h("p", { class: "memory-text" }, this.text), h("div", { class: "memory-foot" }, note ?? h("span"), tools));
  }

  async edit() {
    try {
      // What was surfaced may be a part of a long note: the whole note is edited.
      this.text = (await api("GET", path(this.item))).content;
    } catch (error) {
      this.fail(error);
      return;
    }
    const field = h("textarea", { class: "input", "aria-label": "Memory", maxlength: "20000", value: this.text });
    const form = h("form", { class: "memory-form" }, field, h("div", { class: "row" }, h("button", { class: "btn btn-primary btn-small" }, "Save"), h("button", { type: "button", class: "btn btn-quiet btn-small", onclick: () => this.back() }, "Cancel")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.save(field.value.trim());
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

  back(note = null) {
    this.read(note);
    this.element.querySelector("button")?.focus();
  }

  async save(content) {
    const before = this.text;
    if (!content || content === before) {
      this.back();
      return;
    }
    if (!(await this.write(content))) return;
    this.back(this.undoNote("Saved", async () => (await this.write(before)) && this.back()));
  }

  async write(content) {
    try {
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
    const undo = this.undoNote("Deleted", async () => {
      try {
        await api("POST", path(this.item, "restore/"));
        this.element.classList.remove("memory-gone");
        this.back();
      } catch (error) {
        toastError(error);
      }
    });
    this.element.classList.add("memory-gone");
    this.element.replaceChildren(h("p", { class: "memory-text" }, this.text), h("div", { class: "memory-foot" }, undo));
    undo.querySelector("button").focus();
  }

  undoNote(words, onclick) {
    return h("span", { class: "memory-note", role: "status" }, `${words} · `, h("button", { type: "button", class: "link-button", onclick }, "Undo"));
  }

  /** A note that is gone since (404) says so; other failures are passing. */
  fail(error) {
    if (error.status === 404) {
      this.element.classList.add("memory-gone");
      this.element.replaceChildren(h("p", { class: "memory-text" }, this.text), h("div", { class: "memory-foot" }, h("span", { class: "memory-note" }, "No longer in memory")));
    } else {
      toastError(error);
    }
  }
}
