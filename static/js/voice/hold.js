// Pressing a button or a key to talk: short, and it stays on until the next press; held, and it is on for as long.

const HELD = 400; // milliseconds
const COMBINATION = "KeyV"; // with Alt

/** talk: {state, start({held}), keep(), finish()}, as Dictation is */
export function holdToTalk(button, talk) {
  let since = null; // when what is held was pressed
  let wasOn = false;
  let handled = false; // a press has done what the click after it would do
  const press = () => {
    if (since !== null) return;
    since = performance.now();
    wasOn = talk.state !== "off";
    if (!wasOn) talk.start();
  };
  const release = () => {
    if (since === null) return;
    const long = performance.now() - since >= HELD;
    since = null;
    if (wasOn || long) talk.finish();
    else talk.keep();
  };
  const over = () => since !== null && release();

  button.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    handled = true;
    button.setPointerCapture?.(event.pointerId);
    press();
  });
  button.addEventListener("pointerup", over);
  button.addEventListener("pointercancel", over);
  button.addEventListener("contextmenu", (event) => since !== null && event.preventDefault());
  button.addEventListener("keydown", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    if (!event.repeat) press();
  });
  button.addEventListener("keyup", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    release();
  });
  // Enter, a screen reader and voice control click without a press.
  button.addEventListener("click", (event) => {
    if (!handled || event.detail === 0) {
      press();
      since = null;
      if (wasOn) talk.finish();
      else talk.keep();
    }
    handled = false;
  });
  document.addEventListener("keydown", (event) => {
    if (!event.altKey || event.ctrlKey || event.metaKey || event.code !== COMBINATION || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    if (!event.repeat) press();
  });
  document.addEventListener("keyup", (event) => (event.code === COMBINATION || event.key === "Alt") && over());
  // A page that is left does not hear the key being let go; one that the browser asks about the microphone is not left.
  window.addEventListener("blur", () => {
    if (since === null) return;
    since = null;
    if (talk.state === "starting") talk.keep();
    else talk.finish();
  });
}
