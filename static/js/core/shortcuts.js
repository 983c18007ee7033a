// Shortcuts of every page. An element names its own with data-shortcut="alt+n"; "?" opens the list.
import { MAC, isTyping } from "./dom.js";

function combination(event) {
  const parts = [];
  if (event.ctrlKey || event.metaKey) parts.push("mod");
  if (event.altKey) parts.push("alt");
  // With Alt held some layouts type a special character, so the letter comes from the key's place.
  const key = event.altKey && event.code.startsWith("Key") ? event.code.slice(3) : event.key;
  parts.push(key.toLowerCase());
  return parts.join("+");
}

function activate(element) {
  if (element.matches("input, textarea")) {
    // What stands in the drawer of a narrow page is reached by opening it, and nothing else is.
    const drawer = element.checkVisibility({ visibilityProperty: true }) ? null : document.querySelector('[data-drawer="open"][aria-expanded="false"]');
    if (drawer?.checkVisibility()) drawer.click();
    element.focus();
    element.select?.();
  } else {
    element.click();
  }
}

/** The keys of the page at hand: rows whose `data-when` finds nothing on it are left out. */
export function showShortcuts() {
  const dialog = document.getElementById("shortcuts-dialog");
  if (!dialog || dialog.open) return;
  for (const row of dialog.querySelectorAll("[data-when]")) row.hidden = document.querySelector(row.dataset.when) === null;
  dialog.showModal();
}

/** As Enter in a form of one field does: presses its first button. */
function save(form) {
  const button = form.querySelector('button:not([type]), [type="submit"]');
  if (button) button.click();
  else form.requestSubmit();
}

/** Leaves what is edited in place: by its Cancel, or by closing what was opened for it; false in any other form. */
function leave(target) {
  const cancel = target.closest?.("form")?.querySelector("[data-cancel]");
  const opened = target.closest?.("details[data-leave][open]");
  if (cancel) cancel.click();
  else if (opened) {
    opened.open = false;
    opened.querySelector("summary").focus();
  }
  return Boolean(cancel ?? opened);
}

export function startShortcuts() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const combo = combination(event);
    if (combo === "escape" && leave(event.target)) {
      event.preventDefault();
      return;
    }
    if (combo === "?" && !isTyping(event.target)) {
      event.preventDefault();
      showShortcuts();
      return;
    }
    if (combo === "mod+enter" && event.target.form) {
      event.preventDefault();
      save(event.target.form);
      return;
    }
    // On a Mac Option and a letter type another letter, or an accent for the next one.
    if (MAC && event.altKey && isTyping(event.target)) return;
    const wantsModifier = combo.includes("+");
    if (!wantsModifier && isTyping(event.target)) return;
    const element = document.querySelector(`[data-shortcut="${CSS.escape(combo)}"]`);
    if (!element) return;
    event.preventDefault();
    activate(element);
  });
}
