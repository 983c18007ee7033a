// Swagger UI has a dark look of its own; it follows the theme that holds on the other pages. Not a module: it runs before the first paint.
(() => {
  const root = document.documentElement;
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const follow = () => root.classList.toggle("dark-mode", root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  dark.addEventListener("change", follow);
  follow();
})();
