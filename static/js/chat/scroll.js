// The log follows new text only while the reader is at its end; otherwise a button leads there.
const NEAR = 80;

export class ScrollKeeper {
  #following = true;
  #atStart = false;
  #lastTop = 0;

  constructor(scroller, content, button) {
    this.scroller = scroller;
    this.button = button;
    scroller.addEventListener("scroll", () => this.#onScroll(), { passive: true });
    button.addEventListener("click", () => this.toEnd({ smooth: true }));
    scroller.addEventListener("click", (event) => this.#onClick(event));
    new ResizeObserver(() => this.keep()).observe(content);
    new ResizeObserver(() => this.keep()).observe(scroller);
  }

  /** Whether the reader is at the end and is taken along. */
  get isFollowing() {
    return this.#following;
  }

  /** After content changed: stay at the end if the reader was there. */
  keep() {
    if (this.#following) this.#jump();
    this.#showButton();
  }

  /** Runs a change above what the reader sees, and keeps that where it is. */
  holding(change) {
    const fromEnd = this.scroller.scrollHeight - this.scroller.scrollTop;
    change();
    this.scroller.scrollTop = this.scroller.scrollHeight - fromEnd;
    this.#lastTop = this.scroller.scrollTop;
  }

  toEnd({ smooth = false } = {}) {
    this.#atStart = false;
    this.#following = true;
    if (smooth && !window.matchMedia("(prefers-reduced-motion: reduce)").matches) {
      this.scroller.scrollTo({ top: this.scroller.scrollHeight, behavior: "smooth" });
    } else {
      this.#jump();
    }
    this.#showButton();
  }

  /** What somebody came for stands at the top; new text does not take the reader away from it. */
  toElement(element) {
    this.#following = false;
    this.#atStart = false;
    element.scrollIntoView({ block: "start" });
    this.#lastTop = this.scroller.scrollTop;
    this.#showButton();
  }

  /** Where nothing has been said yet, the page is read from its top. */
  toStart() {
    this.#atStart = true;
    this.#following = false;
    this.scroller.scrollTop = 0;
    this.#lastTop = 0;
    this.#showButton();
  }

  /** Whoever opens a card wants to read it: what grows now must not be scrolled away. */
  #onClick(event) {
    if (!event.target.closest("summary")) return;
    this.#following = false;
    requestAnimationFrame(() => requestAnimationFrame(() => this.#showButton()));
  }

  #jump() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#lastTop = this.scroller.scrollTop;
  }

  #distance() {
    return this.scroller.scrollHeight - this.scroller.clientHeight - this.scroller.scrollTop;
  }

  /** Scrolling up is the reader's doing; being near the end again takes the reader along. */
  #onScroll() {
    const { scrollTop } = this.scroller;
    if (this.#atStart) return;
    if (this.#distance() < NEAR) this.#following = scrollTop >= this.#lastTop || this.#distance() < 2;
    else if (scrollTop < this.#lastTop - 1) this.#following = false;
    this.#lastTop = scrollTop;
    this.#showButton();
  }

  #showButton() {
    if (this.#distance() < 2 && !this.#atStart) this.#following = true;
    this.button.hidden = this.#following || this.#atStart || this.#distance() < NEAR;
  }
}
