// The command palette (Ctrl+K): a combobox whose lines come from the server, by keys alone, by mouse or finger.
import { MAC, isTyping, sanitised } from "./dom.js";
import { showShortcuts } from "./shortcuts.js";
import { switchTheme } from "./theme-switch.js";

const WAIT = 140; // ms after the last key
const byId = (id) => document.getElementById(id);
let asked = null; // the request under way
let shown = null; // the words whose lines are shown
let timer = 0;

const options = () => [...byId("palette-list").querySelectorAll('[role="option"]')];

function choose(option) {
  for (const each of options()) each.setAttribute("aria-selected", String(each === option));
  const field = byId("palette-input");
  if (option) {
    field.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  } else field.removeAttribute("aria-activedescendant");
}

function show(fragment, none = "Nothing fits. Try other words.") {
  byId("palette-list").replaceChildren(fragment);
  const found = options();
  for (const [number, option] of found.entries()) option.id = `palette-${number}`;
  byId("palette-none").textContent = none;
  byId("palette-none").hidden = found.length > 0;
  byId("palette-said").textContent = found.length === 0 ? "Nothing fits" : `${found.length} ${found.length === 1 ? "line fits" : "lines fit"}`;
  choose(found[0] ?? null);
}

async function ask() {
  asked?.abort();
  const own = (asked = new AbortController());
  const field = byId("palette-input");
  const words = field.value;
  try {
    const answer = await fetch(`${field.dataset.url}?q=${encodeURIComponent(words)}`, { signal: own.signal, credentials: "same-origin", headers: { "HX-Request": "true" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const html = await answer.text();
    if (asked !== own) return;
    show(sanitised(html));
    shown = words;
  } catch {
    if (asked !== own || own.signal.aborted) return;
    show(document.createDocumentFragment(), "Izzy cannot be reached right now.");
    shown = null;
  }
}

/** Opens the line that is chosen, of those for the words that stand there now. */
async function open() {
  const field = byId("palette-input");
  if (shown !== field.value) {
    clearTimeout(timer);
    await ask();
  }
  if (shown === field.value && byId("palette").open) byId("palette-list").querySelector('[aria-selected="true"]')?.click();
}

function move(step) {
  const all = options();
  if (!all.length) return;
  const place = all.findIndex((each) => each.getAttribute("aria-selected") === "true");
  choose(all[(place + step + all.length) % all.length]);
}

const DOES = {
  theme: switchTheme,
  shortcuts: showShortcuts,
};

function onKey(event) {
  if (event.isComposing) return;
  const pages = { ArrowDown: 1, ArrowUp: -1, PageDown: 5, PageUp: -5 };
  if (event.key in pages) {
    event.preventDefault();
    move(pages[event.key]);
  } else if (event.key === "Enter") {
    event.preventDefault();
    open();
  }
}

export function openPalette() {
  const dialog = byId("palette");
  if (!dialog || dialog.open || document.querySelector("dialog[open]")) return;
  byId("palette-input").value = "";
  shown = null;
  byId("palette-list").replaceChildren();
  byId("palette-none").hidden = true;
  choose(null);
  dialog.showModal();
  byId("palette-input").focus();
  ask();
}

export function startPalette() {
  const dialog = byId("palette");
  if (!dialog) return;
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-palette]")) openPalette();
    if (event.target.closest("[data-palette-close]")) dialog.close();
    const option = event.target.closest("#palette-list [role=option]");
    if (!option || event.metaKey || event.ctrlKey) return;
    dialog.close();
    DOES[option.dataset.does]?.();
  });
  byId("palette-input").addEventListener("keydown", onKey);
  byId("palette-input").addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, WAIT);
  });
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey || event.shiftKey || event.key.toLowerCase() !== "k") return;
    // On a Mac Ctrl+K deletes to the end of the line; there it is ⌘K where one types.
    const control = event.ctrlKey && !(MAC && !dialog.open && isTyping(event.target));
    if (!event.metaKey && !control) return;
    event.preventDefault();
    if (dialog.open) dialog.close();
    else openPalette();
  });
}
