// Forms whose changes are asked for before the page is left (data-unsaved).
export function startUnsaved() {
  for (const form of document.querySelectorAll("form[data-unsaved]")) guard(form);
}

function guard(form) {
  let changed = false;
  form.addEventListener("input", () => {
    changed = true;
  });
  form.addEventListener("submit", () => {
    changed = false;
  });
  addEventListener("beforeunload", (event) => {
    if (changed) event.preventDefault();
  });
}
