// The page of a build: its card, fed by server-sent events, and the transcript, fetched again as the build goes on.
import { BuildCard } from "../builds/card.js";

const PAUSE = 1500;
const AGAIN_AFTER = 5000;
const TYPES = ["question", "answer", "progress", "complete", "error"];

const place = document.querySelector("[data-build-card]");

function start(id, open) {
  const card = new BuildCard(id, {}, { details: false });
  place.replaceChildren(card.element);
  if (!open) return;
  const transcript = new Transcript(document.getElementById("build-transcript"));
  follow(id, (message) => {
    card.add(message);
    transcript.soon();
  });
}

/** A browser takes up a connection again that broke, but not one that was answered with an error, as by a proxy without its server. */
function follow(id, onMessage) {
  const events = new EventSource(`/api/v1/builds/${id}/events/`);
  const onEvent = (event) => {
    const message = JSON.parse(event.data);
    onMessage(message);
    if (message.type === "complete" || (message.type === "error" && message.payload)) events.close();
  };
  for (const type of TYPES) events.addEventListener(type, (event) => event.data && onEvent(event));
  events.addEventListener("error", (event) => {
    if (!event.data && events.readyState === EventSource.CLOSED) setTimeout(() => follow(id, onMessage), AGAIN_AFTER);
  });
}

class Transcript {
  #due = null;

  constructor(element) {
    this.element = element;
  }

  soon() {
    this.#due ??= setTimeout(() => this.#fetch(), PAUSE);
  }

  async #fetch() {
    this.#due = null;
    const response = await fetch(this.element.dataset.url, { credentials: "same-origin" }).catch(() => null);
    if (!response?.ok) return;
    const opened = [...this.element.querySelectorAll("details")].map((item) => item.open);
    this.element.innerHTML = await response.text();
    this.element.querySelectorAll("details").forEach((item, index) => {
      if (index < opened.length) item.open = opened[index];
    });
  }
}

if (place) start(place.dataset.buildCard, place.dataset.open !== undefined);
