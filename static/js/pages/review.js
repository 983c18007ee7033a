// The review page by keyboard: J and K move, A, E, M, R (of two that contradict each other 1, 2, B) press the button of the card, X ticks it.
import { isTyping } from "../core/dom.js";

const cards = () => [...document.querySelectorAll("[data-review]")];
let present = null; // the id of the card that keys act on
let follows = null; // the id of the card to go to when the present one is decided

function current() {
  return document.activeElement?.closest("[data-review]") ?? (present && document.getElementById(present));
}

function move(step) {
  const all = cards();
  if (!all.length) return;
  const place = all.indexOf(current());
  const next = all[Math.min(Math.max(place < 0 ? 0 : place + step, 0), all.length - 1)];
  present = next.id;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

function press(card, key) {
  const button = card.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!button) return false;
  const all = cards();
  const place = all.indexOf(card);
  follows = "ar12b".includes(key) ? (all[place + 1] ?? all[place - 1])?.id : null;
  button.click();
  return true;
}

function onKey(event) {
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (isTyping(event.target) || document.querySelector("dialog[open]")) return;
  const key = event.key.toLowerCase();
  const card = current();
  if (key === "j" || key === "k") move(key === "j" ? 1 : -1);
  else if (key === "x" && card) card.querySelector('input[name="notes"]')?.click();
  else if (!card || !"aemr12b".includes(key) || !press(card, key)) return;
  event.preventDefault();
}

/** When a card was decided by key, the next one is taken up. */
function afterSwap() {
  const next = follows && document.getElementById(follows);
  if (!next) return;
  follows = null;
  present = next.id;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

const older = document.querySelector('.pagination [rel="next"]');
const after = older?.href;

/** What was decided no longer waits, and what follows has come up into its place: the next ones are on this page anew. */
function leadOn() {
  if (older) older.href = document.querySelector("#review-list [data-review-done]") ? location.pathname + location.search : after;
}

const keys = document.getElementById("review-keys");
if (keys) keys.hidden = false;
document.addEventListener("keydown", onKey);
document.addEventListener("htmx:after:swap", afterSwap);
document.addEventListener("htmx:after:swap", leadOn);
