// The message that an address points at (`/c/…/#message-<id>`): a memory's page leads to where it was said.
const POINTS = /^#message-([0-9a-f-]{36})$/;

export function messageOf(hash) {
  return POINTS.exec(hash)?.[1] ?? null;
}

/** The id, taken out of the address: what is pointed at once is not gone back to when the connection comes back. */
export function takeMessageFromUrl() {
  const id = messageOf(location.hash);
  if (id) history.replaceState(history.state, "", location.pathname);
  return id;
}

export function turnWith(state, id) {
  return state.turns.find((turn) => turn.user?.id === id || turn.messages.includes(id)) ?? null;
}

/** Shows whoever came for it which one it is. */
export function point(element) {
  element.tabIndex = -1;
  element.classList.add("turn-pointed");
  element.focus({ preventScroll: true });
  element.addEventListener("blur", () => element.classList.remove("turn-pointed"), { once: true });
}
