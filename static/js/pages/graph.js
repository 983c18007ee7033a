// The picture of the graph: what is pointed at stands out and is shown whole; it can be moved and zoomed by pointer, buttons and keys.
import { isTyping } from "../core/dom.js";

const LIT = "graph-near";
const NEAREST = 6; // as often as the picture can be larger than it is as a whole
const STEP = 1.4;
const PAN = 0.15; // of what is shown
const SLACK = 4; // px until a press is a move

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
  const whole = document.querySelector(".graph-now");
  if (!whole) return;
  whole.hidden = place === null;
  whole.textContent = place === null ? "" : (document.querySelector(`.graph-dot[data-place="${CSS.escape(place)}"]`)?.getAttribute("aria-label") ?? "");
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

/** The part of a picture that is shown; `whole` is all of it. */
class View {
  constructor(picture) {
    this.picture = picture;
    const { x, y, width, height } = picture.viewBox.baseVal;
    this.whole = { x, y, width, height };
    this.part = { ...this.whole };
    picture.classList.add("graph-moves");
    picture.addEventListener("pointerdown", (event) => this.hold(event));
    picture.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
  }

  show(x, y, width) {
    const { whole } = this;
    const wide = Math.min(Math.max(width, whole.width / NEAREST), whole.width);
    const high = (wide / whole.width) * whole.height;
    this.part = {
      x: Math.min(Math.max(x, whole.x), whole.x + whole.width - wide),
      y: Math.min(Math.max(y, whole.y), whole.y + whole.height - high),
      width: wide,
      height: high,
    };
    this.picture.setAttribute("viewBox", Object.values(this.part).join(" "));
  }

  /** Larger by `factor` about a place of the part that is shown, its middle unless told. */
  zoom(factor, across = 0.5, down = 0.5) {
    const { x, y, width, height } = this.part;
    const wide = Math.min(Math.max(width / factor, this.whole.width / NEAREST), this.whole.width);
    const high = (wide / width) * height;
    this.show(x + (width - wide) * across, y + (height - high) * down, wide);
  }

  pan(across, down) {
    const { x, y, width, height } = this.part;
    this.show(x + across * width, y + down * height, width);
  }

  wheel(event) {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    const box = this.picture.getBoundingClientRect();
    this.zoom(event.deltaY < 0 ? STEP : 1 / STEP, (event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height);
  }

  hold(event) {
    if (event.button !== 0 || this.part.width === this.whole.width) return;
    const from = { ...this.part };
    const scale = from.width / this.picture.getBoundingClientRect().width;
    let moved = false;
    const move = (next) => {
      const [across, down] = [next.clientX - event.clientX, next.clientY - event.clientY];
      moved ||= Math.hypot(across, down) > SLACK;
      if (!moved) return;
      this.picture.classList.add("graph-held");
      this.show(from.x - across * scale, from.y - down * scale, from.width);
    };
    const ended = new AbortController();
    const { signal } = ended;
    const drop = ({ type }) => {
      ended.abort();
      this.picture.classList.remove("graph-held");
      if (!moved || type !== "pointerup") return;
      // What was moved was not pressed. A click comes at once, and of a finger that moved none does.
      const stop = (click) => click.preventDefault();
      window.addEventListener("click", stop, true);
      setTimeout(() => window.removeEventListener("click", stop, true));
    };
    window.addEventListener("pointermove", move, { signal });
    window.addEventListener("pointerup", drop, { signal });
    window.addEventListener("pointercancel", drop, { signal });
  }

  /** Brings what has the focus into the part that is shown. */
  follow(dot) {
    const { x, y, width, height } = this.part;
    const circle = dot.querySelector("circle");
    const [cx, cy] = [Number(circle.getAttribute("cx")), Number(circle.getAttribute("cy"))];
    if (cx < x || cy < y || cx > x + width || cy > y + height) this.show(cx - width / 2, cy - height / 2, width);
  }
}

const KEYS = {
  "+": (view) => view.zoom(STEP),
  "=": (view) => view.zoom(STEP),
  "-": (view) => view.zoom(1 / STEP),
  0: (view) => view.zoom(0),
  ArrowLeft: (view) => view.pan(-PAN, 0),
  ArrowRight: (view) => view.pan(PAN, 0),
  ArrowUp: (view) => view.pan(0, -PAN),
  ArrowDown: (view) => view.pan(0, PAN),
};
const BUTTONS = { in: KEYS["+"], out: KEYS["-"], all: KEYS[0] };

const box = document.querySelector(".graph-box");
if (box) {
  const views = [...box.querySelectorAll(".graph")].map((picture) => new View(picture));
  const tools = box.querySelector(".graph-tools");
  tools.hidden = false;
  tools.addEventListener("click", (event) => {
    const act = BUTTONS[event.target.closest("[data-graph]")?.dataset.graph];
    if (act) views.forEach(act);
  });
  box.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || !KEYS[event.key]) return;
    event.preventDefault();
    views.forEach(KEYS[event.key]);
  });
  box.addEventListener("dragstart", (event) => event.preventDefault());
  box.addEventListener("focusin", (event) => {
    const dot = event.target.closest(".graph-dot");
    if (dot) for (const view of views) if (view.picture.contains(dot)) view.follow(dot);
  });
}
