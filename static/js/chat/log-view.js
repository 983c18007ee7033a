// The list of turns on the page, kept in step with the state. Changes are drawn once per frame.
import { lastTurn } from "./state.js";
import { TurnView } from "./turn-view.js";

export class LogView {
  #views = new Map();
  #dirty = new Set();
  #scheduled = false;

  constructor(container, empty, actions) {
    this.container = container;
    this.empty = empty;
    this.actions = actions;
  }

  viewOf(turn) {
    return this.#views.get(turn?.key) ?? null;
  }

  /** Draws a whole other state, without a trace of the one before. */
  reset(state) {
    this.#views.clear();
    this.#dirty.clear();
    this.container.replaceChildren();
    this.drawAll(state);
  }

  /** Draws the turn at the next frame; many deltas become one change of the page. */
  draw(state, turn) {
    this.#dirty.add(turn.key);
    if (this.#scheduled) return;
    this.#scheduled = true;
    const run = () => {
      if (!this.#scheduled) return;
      this.#scheduled = false;
      const keys = [...this.#dirty];
      this.#dirty.clear();
      for (const key of keys) {
        const found = state.turns.find((item) => item.key === key);
        if (found) this.#draw(found, state);
      }
    };
    // A hidden tab gets no animation frames: a timer makes sure that it is drawn as well.
    requestAnimationFrame(run);
    setTimeout(run, 120);
  }

  #draw(turn, state) {
    const view = this.#views.get(turn.key);
    view?.update(turn === lastTurn(state));
    if (view) this.actions.drawn?.(turn, view);
  }

  /** Adds, removes and orders turns, then draws each. */
  drawAll(state) {
    const turns = new Map(state.turns.map((turn) => [turn.key, turn]));
    for (const [key, view] of this.#views) {
      if (view.turn === turns.get(key)) continue;
      view.element.remove();
      this.#views.delete(key);
    }
    state.turns.forEach((turn, index) => {
      let view = this.#views.get(turn.key);
      if (!view) {
        view = new TurnView(turn, this.actions);
        this.#views.set(turn.key, view);
      }
      if (this.container.children[index] !== view.element) this.container.insertBefore(view.element, this.container.children[index] ?? null);
      this.#draw(turn, state);
    });
    this.empty.hidden = state.turns.length > 0;
    this.container.hidden = state.turns.length === 0;
  }

  /** While Izzy answers nothing can be edited or tried again: the style sheet hides the buttons, of however many turns. */
  setBusy(busy) {
    this.container.toggleAttribute("data-busy", busy);
  }

  resetAsks() {
    for (const view of this.#views.values()) view.resetAsks();
  }
}
