// "Tick all": data-tick-all names the boxes by a selector; where all are ticked it takes the ticks away.
export function startTicks() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-tick-all]");
    if (!button) return;
    const boxes = [...document.querySelectorAll(button.dataset.tickAll)];
    const tick = boxes.some((box) => !box.checked);
    for (const box of boxes) box.checked = tick;
  });
}
