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
  document.addEventListener("htmx:error", () => toast("Izzy cannot be reached right now.", { kind: "danger" }));
}

/** A failed request leaves the page as it is, unless the answer is a form with its errors (422). */
function onSwap(event) {
  const { ctx } = event.detail;
  const status = ctx?.response?.status ?? 200;
  if (status < 400 || status === 422) return;
  event.preventDefault();
  toast(messageFor(status), { kind: "danger" });
}

function messageFor(status) {
  if (status === 401 || status === 403) return "You are signed out, or this is not yours. Reload the page.";
  if (status === 404) return "This is no longer there.";
  if (status === 429) return "Too many requests. Wait a moment and try again.";
  return `That did not work (${status}).`;
}
