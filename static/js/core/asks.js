// Dialogs that the server writes: <a href="/…" data-ask-url="/…"> opens what the address answers in #ask-dialog; without a script the
// link leads to the same on a page of its own.
import { toast } from "./toasts.js";

const dialog = () => document.getElementById("ask-dialog");

export function startAsks() {
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-ask-url]");
    if (opener && !event.metaKey && !event.ctrlKey && event.button === 0) {
      event.preventDefault();
      open(opener);
    } else if (event.target.closest("#ask-dialog [data-close]")) dialog().close();
  });
  // It is sent on from here: whoever asked sees what comes of it where it happens.
  dialog()?.addEventListener("submit", () => setTimeout(() => dialog().close()));
}

async function open(opener) {
  const menu = opener.closest("[popover]");
  const back = menu ? document.querySelector(`[popovertarget="${CSS.escape(menu.id)}"]`) : opener;
  menu?.hidePopover();
  const box = dialog();
  box.replaceChildren();
  await window.htmx.ajax("GET", opener.dataset.askUrl, { target: "#ask-dialog", swap: "innerHTML" });
  if (!box.firstElementChild) return toast("That did not work. Reload the page and try again.", { kind: "danger" });
  box.showModal();
  box.addEventListener("close", () => {
    if (!document.activeElement || document.activeElement === document.body) back?.focus();
  }, { once: true });
}
