// How long something takes by now: nothing for the first seconds, then what it waits for and the seconds.
import { h } from "../core/dom.js";

const SILENT_SECONDS = 4;

/** Counts while it is on the page; `since` is when it began, by this page's clock. */
export function elapsed(words, since = Date.now()) {
  const element = h("span", { "aria-hidden": "true" });
  const tick = () => {
    const passed = Math.round((Date.now() - since) / 1000);
    if (passed >= SILENT_SECONDS) element.textContent = [words, `${passed} s`].filter(Boolean).join(", ");
    setTimeout(() => element.isConnected && tick(), 1000);
  };
  tick();
  return element;
}
