// Short notes at the bottom of the window, with one action at most (usually Undo).
import { h, iconButton, isolated } from "./dom.js";

const SECONDS = 6;
const SECONDS_WITH_ACTION = 12;

/** toast("Deleted", {action: "Undo", onaction, kind: "danger"}) → a function that removes it. */
export function toast(text, { action = null, onaction = null, kind = "" } = {}) {
  const region = document.getElementById("toasts");
  if (!region) return () => {};
  const element = h("div", { class: kind ? `toast toast-${kind}` : "toast" }, h("span", {}, isolated(text)));
  let timer = null;
  const remove = () => {
    clearTimeout(timer);
    element.remove();
  };
  if (action) {
    const run = () => {
      remove();
      onaction();
    };
    element.append(h("button", { type: "button", class: "btn btn-small btn-action", onclick: run }, action));
  }
  element.append(iconButton("close", "Dismiss", remove));
  const wait = () => {
    timer = setTimeout(remove, (action ? SECONDS_WITH_ACTION : SECONDS) * 1000);
  };
  element.addEventListener("pointerenter", () => clearTimeout(timer));
  element.addEventListener("pointerleave", wait);
  element.addEventListener("focusin", () => clearTimeout(timer));
  element.addEventListener("focusout", wait);
  region.append(element);
  wait();
  return remove;
}

export function toastError(error) {
  toast(error?.message ?? String(error), { kind: "danger" });
}
