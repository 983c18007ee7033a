// Copy to the clipboard, also on plain http where navigator.clipboard is missing.
import { toast } from "./toasts.js";

export async function copyText(text) {
  if (navigator.clipboard && window.isSecureContext) {
    await navigator.clipboard.writeText(text);
    return true;
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

/** Shows on the button that the copy worked: a tick for a moment. */
export async function copyFrom(button, text) {
  const focused = document.activeElement;
  const done = await copyText(text).catch(() => false);
  if (focused instanceof HTMLElement) focused.focus();
  if (!done) {
    toast("The browser did not allow copying.", { kind: "danger" });
    return;
  }
  const use = button.querySelector("use");
  if (use) {
    use.setAttribute("href", "#i-check");
    setTimeout(() => use.setAttribute("href", "#i-copy"), 1500);
  }
  announceCopied();
}

function announceCopied() {
  const region = document.getElementById("announcer");
  if (region) region.textContent = "Copied";
  else toast("Copied");
}

/** Buttons with data-copy="#id-of-the-text". */
export function startCopyButtons() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const source = document.querySelector(button.dataset.copy);
    if (source) copyFrom(button, source.value ?? source.textContent.trim());
  });
}
