// Runs before the first paint, so that a chosen theme never flashes. Not a module on purpose.
(() => {
  try {
    const theme = localStorage.getItem("izzy-theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is blocked: the system's theme it is.
  }
})();
