// The set-up token stands in the link's fragment, which no server or proxy logs: from there into the form.
const field = document.querySelector("[data-setup-token]");

function take() {
  const token = decodeURIComponent(location.hash.slice(1));
  if (!token) return;
  field.value = token;
  hide();
  history.replaceState(null, "", location.pathname);
}

/** What is filled in already is nobody's task. */
function hide() {
  field.closest(".field")?.setAttribute("hidden", "");
  if (document.activeElement === document.body || document.activeElement === field) field.form.querySelector(".field:not([hidden]) input")?.focus();
}

if (field) {
  take();
  if (field.value && field.getAttribute("aria-invalid") !== "true") hide(); // it came back with a form in which something else is wrong
  window.addEventListener("hashchange", take); // the link is opened where this page stands already
  if (!field.value) field.focus();
}

const zone = document.querySelector("[data-time-zone]");
if (zone) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
