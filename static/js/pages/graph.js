// What is pointed at or focused in the picture, or in the words below it, stands out with what it is linked to.

const LIT = "graph-near";

function light(place) {
  for (const picture of document.querySelectorAll(".graph")) {
    const near = new Set(place === null ? [] : [place]);
    for (const line of picture.querySelectorAll("[data-ends]")) {
      const ends = line.dataset.ends.split(" ");
      const lit = place !== null && ends.includes(place);
      line.classList.toggle(LIT, lit);
      if (lit) for (const end of ends) near.add(end);
    }
    for (const dot of picture.querySelectorAll("[data-place]")) dot.classList.toggle(LIT, near.has(dot.dataset.place));
  }
}

const placeOf = (target) => target.closest?.(".graph-dot, .graph-words [data-place]")?.dataset.place ?? null;

for (const [on, off] of [
  ["pointerover", "pointerout"],
  ["focusin", "focusout"],
]) {
  document.addEventListener(on, (event) => {
    const place = placeOf(event.target);
    if (place !== null) light(place);
  });
  document.addEventListener(off, (event) => {
    if (placeOf(event.target) !== null) light(null);
  });
}
