// "Tick all": data-tick-all names the boxes by a selector; where all are ticked it takes the ticks away. data-ticked says how many are.
export function startTicks() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-tick-all]");
    if (!button) return;
    const boxes = [...document.querySelectorAll(button.dataset.tickAll)];
    const tick = boxes.some((box) => !box.checked);
    for (const box of boxes) box.checked = tick;
    count();
  });
  document.addEventListener("change", count);
  document.addEventListener("htmx:after:swap", count);
}

function count() {
  for (const place of document.querySelectorAll("[data-ticked]")) {
    const ticked = [...document.querySelectorAll(place.dataset.ticked)].filter((box) => box.checked).length;
    const words = ticked ? `${ticked} ticked` : "";
    if (place.textContent !== words) place.textContent = words;
  }
}
