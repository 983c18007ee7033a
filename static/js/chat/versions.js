// ‹ 2/3 ›: the versions of a message that was edited or answered anew, each with what followed it.
import { h, iconButton } from "../core/dom.js";

/** choose(id, by) asks for another version; which one is in force the server says. */
export function versionSwitch(turn, choose) {
  const at = turn.versions.indexOf(turn.id);
  const step = (by, name, label) => {
    const to = turn.versions[at + by];
    return iconButton(name, label, () => choose(to, by), { dataset: { version: by < 0 ? "before" : "after" }, disabled: to === undefined });
  };
  const place = h("span", { "aria-hidden": "true" }, `${at + 1}/${turn.versions.length}`);
  const name = `Version ${at + 1} of ${turn.versions.length}`;
  return h("span", { class: "versions", role: "group", "aria-label": name }, step(-1, "left", "Version before"), place, step(1, "right", "Version after"));
}

/** After a switch the buttons are new: the reader goes on with the one that was pressed, or the other where that led to the end. */
export function focusVersions(element, by) {
  const wanted = element.querySelector(`[data-version="${by < 0 ? "before" : "after"}"]`);
  const button = wanted?.disabled ? element.querySelector("[data-version]:not(:disabled)") : wanted;
  button?.focus({ preventScroll: true });
}
