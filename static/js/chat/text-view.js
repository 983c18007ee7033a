// One run of assistant text: rendered blocks from the server, and behind them the plain text not yet rendered.
import { h, iconButton, sanitised } from "../core/dom.js";
import { copyFrom } from "../core/copy.js";
import { runButton } from "./code-run.js";

const CONTAINERS = new Set(["UL", "OL", "LI", "P", "BLOCKQUOTE", "DIV", "H1", "H2", "H3", "H4", "H5", "H6"]);

const NOTE = /(?:^|\n)\[\^[^\]\s]+\]:[^\n]*$/; // a footnote's own text is shown once all of it is there
const NOTE_CHARS = 1000;

export class TextView {
  #blocks = new Map();
  #tail = h("span", { class: "tail" });

  constructor(speaker = null) {
    this.element = h("div", { class: "prose" }, speaker ? h("p", { class: "speaker" }, speaker) : null);
  }

  update(segment) {
    for (const [number, html] of segment.html) this.#setBlock(number, html);
    // A new line may begin a list or a heading: what follows it waits the moment until it is rendered.
    const tail = segment.html.size > 0 ? segment.tail.split("\n", 1)[0] : segment.tail;
    this.#setTail(NOTE.test(segment.text.slice(-NOTE_CHARS)) ? "" : tail);
  }

  #setBlock(number, html) {
    let block = this.#blocks.get(number);
    if (block?.html === html) return;
    if (!block) {
      block = { html: "", element: h("div", { class: "prose-block" }) };
      // One that was empty while the answer came may get its words when others behind it stand already.
      const later = [...this.#blocks.keys()].filter((other) => other > number);
      const next = later.length ? this.#blocks.get(Math.min(...later)).element : null;
      this.#blocks.set(number, block);
      this.element.insertBefore(block.element, next);
    }
    block.html = html;
    block.element.replaceChildren(sanitised(html));
    for (const code of block.element.querySelectorAll("pre")) decorate(code);
    for (const table of block.element.querySelectorAll("table")) wrapTable(table);
    for (const number of block.element.querySelectorAll(".footnote-ref")) this.#linkNote(number);
    for (const [index, note] of block.element.querySelectorAll(".footnotes > ol > li").entries()) this.#linkBack(index + 1, note);
  }

  #linkBack(number, note) {
    const go = () => [...this.element.querySelectorAll(".footnote-ref > button")].find((button) => button.textContent === String(number))?.focus();
    (note.querySelector(":scope > p:last-child") ?? note).append(" ", h("button", { type: "button", class: "footnote-link", title: "Back to the text", "aria-label": `Back to the text from footnote ${number}`, onclick: go }, "↩"));
  }

  /** From the number of a footnote to the note, which stands at the end of the same text. */
  #linkNote(number) {
    const go = () => {
      const note = this.element.querySelectorAll(".footnotes li")[Number(number.textContent) - 1];
      note?.setAttribute("tabindex", "-1");
      note?.focus();
      note?.scrollIntoView({ block: "nearest" });
    };
    const text = number.textContent;
    number.replaceChildren(h("button", { type: "button", class: "footnote-link", "aria-label": `Footnote ${text}`, onclick: go }, text));
  }

  #setTail(text) {
    if (!text.trim()) {
      this.#tail.remove();
      return;
    }
    if (this.#tail.textContent !== text) this.#tail.textContent = text;
    const host = this.#blocks.size === 0 ? this.element : lastLine(this.element);
    if (this.#tail.parentNode !== host) host.append(this.#tail);
  }
}

/** The innermost element in which the next word belongs, so that plain text goes on where the HTML ended. */
function lastLine(root) {
  let element = root;
  for (;;) {
    const next = element.lastElementChild;
    const isLast = next && !trailingText(next);
    if (!isLast || !(CONTAINERS.has(next.tagName) || next.tagName === "PRE" || next.tagName === "CODE")) return element;
    element = next;
  }
}

function trailingText(element) {
  let node = element.nextSibling;
  while (node) {
    if (node.nodeType === Node.TEXT_NODE && node.textContent.trim()) return true;
    node = node.nextSibling;
  }
  return false;
}

function wrapTable(table) {
  const wrap = h("div", { class: "prose-table", tabindex: "0", role: "group", "aria-label": "Table" });
  const hint = h("p", { class: "prose-table-hint", "aria-hidden": "true" }, "Scroll sideways for more →");
  table.replaceWith(wrap, hint);
  wrap.append(table);
  widths.observe(wrap);
}

/** A table that is wider than its place says that it scrolls, until its end is reached. */
const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const show = () => {
      target.toggleAttribute("data-wider", target.scrollWidth > target.clientWidth + 1);
      target.toggleAttribute("data-at-end", target.scrollLeft + target.clientWidth >= target.scrollWidth - 1);
    };
    target.onscroll = show;
    show();
  }
});

/** A code block gets a head with its language and a copy button. */
function decorate(pre) {
  const code = pre.querySelector("code") ?? pre;
  const language = languageOf(code) ?? languageOf(pre) ?? languageOf(pre.parentElement);
  const copy = iconButton("copy", "Copy code", () => copyFrom(copy, code.textContent));
  const box = h("div", { class: "code-block" }, h("div", { class: "code-head" }, h("span", { class: "grow" }, language ?? "code"), runButton(language, code, () => box), copy));
  pre.replaceWith(box);
  pre.tabIndex = 0;
  box.append(pre);
}

function languageOf(element) {
  const name = [...(element?.classList ?? [])].find((item) => item.startsWith("language-"));
  return name?.slice("language-".length) ?? element?.dataset?.language ?? null;
}
