// Forms whose changes are asked for before the page is left (data-unsaved), also those that htmx brings later.
const changed = new WeakMap(); // whether a form was changed since it was sent, once either has happened

export function startUnsaved() {
  document.addEventListener("input", ({ target }) => note(target.form, true));
  // What a script sends may fail, and its form is taken from the page once it is saved.
  // Cancel says itself that what was typed is not wanted.
  document.addEventListener("click", ({ target }) => note(target.closest("[data-cancel]")?.closest("form"), false));
  document.addEventListener("submit", (event) => event.defaultPrevented || note(event.target, false));
  addEventListener("beforeunload", (event) => {
    if ([...document.querySelectorAll("form[data-unsaved]")].some(isChanged)) event.preventDefault();
  });
}

function note(form, is) {
  if (form) changed.set(form, is);
}

/** A form that was refused holds what was typed, and says what is wrong with it. */
function isChanged(form) {
  return changed.get(form) ?? form.querySelector('[aria-invalid="true"], [role="alert"]') !== null;
}
