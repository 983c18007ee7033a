// The set-up token stands in the link's fragment, which no server or proxy logs: from there into the form.
const field = document.querySelector("[data-setup-token]");
const token = decodeURIComponent(location.hash.slice(1));
if (field && token) {
  field.value = token;
  field.closest(".field")?.setAttribute("hidden", "");
  history.replaceState(null, "", location.pathname);
}

const zone = document.querySelector("[data-time-zone]");
if (zone) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
