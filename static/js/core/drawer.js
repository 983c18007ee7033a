// On narrow screens the sidebar is a drawer: opened by the menu button, closed by Escape, the scrim or a choice.
const wide = window.matchMedia("(min-width: 56.01rem)");

export function startDrawer() {
  const shell = document.getElementById("shell");
  const sidebar = document.getElementById("sidebar");
  const main = document.getElementById("main");
  const opener = document.querySelector('[data-drawer="open"]');
  if (!shell || !sidebar || !opener) return;

  const set = (open) => {
    shell.classList.toggle("drawer-open", open);
    opener.setAttribute("aria-expanded", String(open));
    main.inert = open;
    if (open) sidebar.querySelector('[data-drawer="close"]').focus();
    else if (sidebar.contains(document.activeElement) && !wide.matches) opener.focus();
  };
  const isOpen = () => shell.classList.contains("drawer-open");

  document.addEventListener("click", (event) => {
    const control = event.target.closest("[data-drawer]");
    if (control) set(control.dataset.drawer === "open");
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && isOpen()) set(false);
  });
  sidebar.addEventListener("click", (event) => {
    if (event.target.closest("a[href]") && isOpen()) set(false);
  });
  wide.addEventListener("change", () => set(false));
}
