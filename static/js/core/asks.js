// Dialogs that the server writes: <a href="/…" data-ask-url="/…"> opens what the address answers in #ask-dialog; without a script the
// link leads to the same on a page of its own.
import { csrfToken } from "./api.js";
import { relist } from "./news.js";
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
  dialog()?.addEventListener("submit", sendOn);
  document.addEventListener("input", ({ target }) => {
    if (target.dataset.picks) target.closest("fieldset").querySelector(`input[type=radio][value="${target.dataset.picks}"]`).checked = true;
  });
  // It is sent on from here: whoever asked sees what comes of it where it happens.
  dialog()?.addEventListener("submit", (event) => event.target.matches("[data-fetch]") || setTimeout(() => dialog().close()));
}

/** A form with data-fetch is sent from here: what is wrong is said in the dialog, what was done beside the lists drawn anew. */
async function sendOn(event) {
  const form = event.target;
  if (!form.matches("[data-fetch]")) return;
  event.preventDefault();
  const problem = form.querySelector("#ask-problem");
  const headers = { Accept: "application/json", "X-CSRFToken": csrfToken() };
  const answer = await fetch(form.action, { method: "POST", headers, body: new URLSearchParams(new FormData(form)), credentials: "same-origin" }).catch(() => null);
  const said = await answer?.json().catch(() => null);
  if (answer?.ok && said) {
    dialog().close();
    if (said.url) return location.assign(said.url);
    await relist();
    toast(said.said);
  } else if (problem) problem.textContent = said?.message ?? "That did not work. Try again.";
}

/** With data-ask-form what its form has chosen goes along, as where it is sent without a script; but for the token. */
function addressOf(opener) {
  if (!("askForm" in opener.dataset)) return opener.dataset.askUrl;
  const chosen = new URLSearchParams(new FormData(opener.form));
  chosen.delete("csrfmiddlewaretoken");
  return `${opener.dataset.askUrl}?${chosen}`;
}

async function open(opener) {
  const menu = opener.closest("[popover]");
  const back = menu ? document.querySelector(`[popovertarget="${CSS.escape(menu.id)}"]`) : opener;
  menu?.hidePopover();
  const box = dialog();
  box.replaceChildren();
  await window.htmx.ajax("GET", addressOf(opener), { target: "#ask-dialog", swap: "innerHTML" });
  if (!box.firstElementChild) return toast("That did not work. Reload the page and try again.", { kind: "danger" });
  box.showModal();
  box.addEventListener("close", () => {
    if (!document.activeElement || document.activeElement === document.body) back?.focus();
  }, { once: true });
}
