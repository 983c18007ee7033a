// What a tool was given and what it gave, as parts of its card.
import { copyFrom } from "../core/copy.js";
import { h, iconButton } from "../core/dom.js";
import { pretty, revealed } from "./format.js";

/** Short inputs as a list of names and values; anything nested as JSON. */
export function inputRows(input) {
  const entries = Object.entries(input ?? {});
  if (entries.length === 0) return [h("p", { class: "faint small" }, "No input.")];
  const simple = entries.every(([, value]) => value === null || typeof value !== "object" || (Array.isArray(value) && value.every((item) => typeof item !== "object")));
  if (!simple) return [section("Input", revealed(pretty(input)))];
  const rows = entries.flatMap(([name, value]) => [h("dt", {}, revealed(name.replaceAll("_", " "))), h("dd", {}, revealed(Array.isArray(value) ? value.join(", ") : String(value)))]);
  return [h("dl", { class: "tool-input" }, rows)];
}

/** A headed block of text with a copy button. */
export function section(label, text, isError = false) {
  const copy = iconButton("copy", `Copy ${label.toLowerCase()}`, () => copyFrom(copy, text));
  return h("div", { class: isError ? "tool-section tool-section-error" : "tool-section" }, h("div", { class: "tool-section-head" }, h("span", {}, label), copy), h("pre", { tabindex: "0" }, text));
}
