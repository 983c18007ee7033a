// A build among the segments of a turn: its card, fed with the messages that came over the socket.
import { BuildCard } from "../builds/card.js";

export class BuildView {
  #card;

  constructor(segment, actions) {
    this.#card = new BuildCard(segment.id, actions);
    this.element = this.#card.element;
  }

  /** Whether the reader is in the card, or waits for what they did there. */
  get hasFocus() {
    return this.#card.busy || this.element.contains(document.activeElement);
  }

  focus() {
    this.#card.focus();
  }

  update(segment) {
    for (const message of segment.messages.values()) this.#card.add(message);
    this.#card.update();
  }
}
