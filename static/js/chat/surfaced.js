// The memories that Izzy had before it while answering: each can be corrected or deleted on the spot, and undone.
import { h, icon } from "../core/dom.js";
import { MemoryCard, reasonLine } from "./memory-card.js";

const wide = window.matchMedia("(min-width: 87.5rem)");
// One listener for all: one of each list's own would keep the lists of every conversation that was ever opened.
wide.addEventListener("change", () => {
  for (const box of document.querySelectorAll(".surfaced-box")) box.open = wide.matches && "newest" in box.dataset;
});

/** What was said in another conversation a moment ago: it is no memory yet. */
function saidCard(item) {
  const link = h("a", { class: "small", href: `/c/${item.conversation}/` }, "Said in another conversation");
  return h("li", { class: "memory-card" }, h("p", { class: "memory-text" }, item.text), reasonLine(item), h("div", { class: "memory-foot" }, link));
}

/** On a wide page the list hangs in the margin, where a longer one would cover its neighbours: one is open at a time. */
export class SurfacedView {
  #shown = "";
  #last = false;

  constructor() {
    this.count = h("span");
    this.list = h("ul", { class: "surfaced-list" });
    this.details = h("details", { class: "surfaced-box" }, h("summary", {}, icon("memory"), this.count, h("span", { class: "tool-chevron" }, icon("down"))), this.list);
    this.details.addEventListener("toggle", () => this.#closeOthers());
    this.element = h("aside", { class: "surfaced", role: "note", "aria-label": "Memories used for this answer", hidden: true }, this.details);
  }

  /** isLast: the newest turn's list is open where there is room for it, the ones before are a click away. */
  update(items, isLast) {
    if (isLast !== this.#last) {
      this.#last = isLast;
      this.details.toggleAttribute("data-newest", isLast);
      this.details.open = isLast && wide.matches;
    }
    const signature = items.map((item) => item.id ?? item.note_id).join();
    if (signature === this.#shown) return;
    this.#shown = signature;
    this.element.hidden = items.length === 0;
    this.count.textContent = items.length === 1 ? "1 memory used" : `${items.length} memories used`;
    this.list.replaceChildren(...items.map((item) => (item.source === "conversation" ? saidCard(item) : new MemoryCard(item).element)));
  }

  #closeOthers() {
    if (!this.details.open || !wide.matches) return;
    for (const other of document.querySelectorAll(".surfaced-box[open]")) {
      if (other !== this.details) other.open = false;
    }
  }
}
