// Building elements without markup in strings: text stays text whatever it contains.

/** h("p", {class: "note", onclick: f, dataset: {id}}, "text", child, null) */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

function setAttribute(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else if (name === "dataset") Object.assign(element.dataset, value);
  else if (name === "value") element.value = value;
  else element.setAttribute(name, value === true ? "" : value);
}

export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.append(use);
  return svg;
}

/** An icon button with an accessible name. */
export function iconButton(name, label, onclick, extra = {}) {
  return h("button", { type: "button", class: "btn btn-quiet btn-icon btn-small", "aria-label": label, title: label, onclick, ...extra }, icon(name));
}

/** Elements made from HTML that the server has already sanitised; never call it with anything else. */
export function sanitised(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  return template.content;
}

export const MAC = /^(Mac|iP)/.test(navigator.platform);

const TYPED_IN = "input:not([type=checkbox], [type=button], [type=submit], [type=reset], [type=file]), textarea, select, [contenteditable]";

/** True while the reader types somewhere, so that single-key shortcuts stay out of the way. */
export function isTyping(target) {
  return target instanceof Element && target.closest(TYPED_IN) !== null;
}

/** A sentence whose quoted words stand in a direction of their own, whatever it is: a title from right to left turns nothing around it. */
export function isolated(sentence) {
  return sentence.replaceAll(/“([^”]*)”/g, "“\u2068$1\u2069”");
}
