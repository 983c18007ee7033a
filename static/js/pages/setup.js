// The set-up token stands in the link's fragment, which no server or proxy logs: from there into the form.
const field = document.querySelector("[data-setup-token]");
function take() {
  const token = decodeURIComponent(location.hash.slice(1));
  if (!token) return;
  field.value = token;
  field.closest(".field")?.setAttribute("hidden", "");
  history.replaceState(null, "", location.pathname);
}

if (field) {
  take();
  window.addEventListener("hashchange", take); // the link is opened where this page stands already
  if (!field.value) field.focus();
}

const zone = document.querySelector("[data-time-zone]");
if (zone) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
