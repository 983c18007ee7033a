// The confirm dialog, and buttons that open any <dialog> by id: data-dialog="shortcuts-dialog".
import { isolated } from "./dom.js";
import { showShortcuts } from "./shortcuts.js";

/** Asks in the page's own dialog; resolves to true or false. */
export function confirmDialog(text, { title = "Are you sure?", ok = "Delete", danger = true } = {}) {
  const dialog = document.getElementById("confirm-dialog");
  if (!dialog) return Promise.resolve(window.confirm(text));
  dialog.querySelector("#confirm-title").textContent = title;
  dialog.querySelector("#confirm-text").textContent = isolated(text);
  const button = dialog.querySelector("#confirm-ok");
  button.textContent = ok;
  button.className = danger ? "btn btn-danger" : "btn btn-primary";
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "ok"), { once: true });
  });
}

function closeOnBackdrop(event) {
  if (event.target instanceof HTMLDialogElement && event.target.open) {
    const box = event.target.getBoundingClientRect();
    const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
    if (!inside) event.target.close();
  }
}

/** Plain forms ask before they are sent when they carry data-confirm. */
async function confirmSubmit(event) {
  const form = event.target;
  const question = event.submitter?.dataset.confirm ?? form.dataset.confirm;
  if (!question || form.dataset.confirmed) return;
  event.preventDefault();
  const ok = event.submitter?.dataset.confirmOk ?? form.dataset.confirmOk ?? "Delete";
  if (!(await confirmDialog(question, { ok }))) return;
  form.dataset.confirmed = "yes";
  form.requestSubmit(event.submitter);
}

export function startDialogs() {
  document.addEventListener("click", (event) => {
    const opener = event.target.closest("[data-dialog]");
    if (opener?.dataset.dialog === "shortcuts-dialog") showShortcuts();
    else if (opener) document.getElementById(opener.dataset.dialog)?.showModal();
    else closeOnBackdrop(event);
  });
  document.addEventListener("submit", confirmSubmit);
}
