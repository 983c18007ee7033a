// htmx: CSRF header, our confirm dialog, and a toast when a request fails.
import { csrfToken } from "./api.js";
import { confirmDialog } from "./dialogs.js";
import { toast } from "./toasts.js";

export function startHtmx() {
  document.addEventListener("htmx:config:request", ({ detail }) => {
    detail.ctx.request.headers["X-CSRFToken"] = csrfToken();
  });
  document.addEventListener("htmx:confirm", async (event) => {
    const { ctx, issueRequest, dropRequest } = event.detail;
    if (!ctx.confirm) return;
    event.preventDefault();
    const ok = ctx.sourceElement.dataset.confirmOk ?? "Delete";
    if (await confirmDialog(ctx.confirm, { ok })) issueRequest();
    else dropRequest();
  });
  document.addEventListener("htmx:before:swap", onSwap);
  document.addEventListener("htmx:before:swap", ({ detail }) => notePlace(detail.ctx.target));
  document.addEventListener("htmx:after:swap", keepFocus);
  document.addEventListener("htmx:error", () => toast("Izzy cannot be reached right now.", { kind: "danger" }));
}

const ACTION = "[autofocus], a[href], button:not([disabled]), input:not([type=hidden]), select, textarea";
let place = null; // of a swap that takes the focus along: what was there, what contains it, what follows it

function notePlace(target) {
  const holdsFocus = target instanceof Element && target.contains(document.activeElement);
  place = holdsFocus ? { target, parent: target.parentElement, next: target.nextElementSibling } : null;
}

/** What had the focus was swapped away: it goes to the next action of what came, never to the body. */
function keepFocus() {
  if (!place || (document.activeElement && document.activeElement !== document.body)) return;
  const { target, parent, next } = place;
  const came = target.isConnected ? target : (next?.isConnected ? (next.previousElementSibling ?? next) : parent?.lastElementChild) ?? parent;
  if (!came?.isConnected) return;
  const action = [...came.querySelectorAll(ACTION)].find((element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: false }));
  if (!action) came.tabIndex = -1;
  (action ?? came).focus({ preventScroll: true });
}

/** A failed request leaves the page as it is, unless the answer is a form with its errors (422). */
function onSwap(event) {
  const { ctx } = event.detail;
  const status = ctx?.response?.status ?? 200;
  if (status < 400 || status === 422) return;
  event.preventDefault();
  const said = ctx.response.headers?.get("Content-Type")?.startsWith("text/plain") ? ctx.text : "";
  toast(said || messageFor(status), { kind: "danger" });
}

function messageFor(status) {
  if (status === 401 || status === 403) return "You are signed out, or this is not yours. Reload the page.";
  if (status === 404) return "This is no longer there.";
  if (status === 429) return "Too many requests. Wait a moment and try again.";
  return `That did not work (${status}).`;
}
