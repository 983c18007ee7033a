// Cycles system → light → dark and keeps the choice in this browser.
const ORDER = ["system", "light", "dark"];

function current() {
  return document.documentElement.dataset.theme ?? "system";
}

function apply(theme) {
  const root = document.documentElement;
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  try {
    if (theme === "system") localStorage.removeItem("izzy-theme");
    else localStorage.setItem("izzy-theme", theme);
  } catch {
    // Storage is blocked: the choice lasts until the next page.
  }
}

function show() {
  for (const name of document.querySelectorAll("[data-theme-name]")) name.textContent = current();
}

export function switchTheme() {
  apply(ORDER[(ORDER.indexOf(current()) + 1) % ORDER.length]);
  show();
}

export function startThemeSwitch() {
  show();
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-theme-switch]")) switchTheme();
  });
}
