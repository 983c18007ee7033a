// Menus are popovers; each opens at its button, above it where there is no room below.
const GAP = 4;
const ITEM = 38; // px, as high as one is

function place(menu, button) {
  const box = button.getBoundingClientRect();
  const height = menu.childElementCount * ITEM + ITEM;
  const above = box.bottom + height > window.innerHeight;
  menu.style.right = `${Math.max(GAP, document.documentElement.clientWidth - box.right)}px`;
  menu.style.top = above ? "auto" : `${box.bottom + GAP}px`;
  // In a low window there may be no room above either: then it begins at the top, over its button.
  menu.style.bottom = above ? `${Math.max(GAP, window.innerHeight - Math.max(box.top - GAP, height))}px` : "auto";
}

export function startMenus() {
  document.addEventListener(
    "beforetoggle",
    (event) => {
      const menu = event.target;
      if (event.newState !== "open" || !menu.classList?.contains("menu")) return;
      const button = document.querySelector(`[popovertarget="${CSS.escape(menu.id)}"]`);
      if (button) place(menu, button);
    },
    true,
  );
}
