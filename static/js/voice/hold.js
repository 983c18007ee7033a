// Pressing a button or a key to talk: short, and it stays on until the next press; held, and it is on for as long.

const HELD = 400; // milliseconds
const COMBINATION = "KeyV"; // with Alt

/** talk: {state, start({held}), keep(), finish()}, as Dictation is */
export function holdToTalk(button, talk) {
  let since = null; // when what is held was pressed
  let wasOn = false;
  let handled = false; // a press has done what the click after it would do
  // By the time of the events: a page that is busy hears of them late.
  const press = ({ timeStamp }) => {
    if (since !== null) return;
    since = timeStamp;
    wasOn = talk.state !== "off";
    if (!wasOn) talk.start();
  };
  const release = ({ timeStamp }) => {
    if (since === null) return;
    const long = timeStamp - since >= HELD;
    since = null;
    if (wasOn || long) talk.finish();
    else talk.keep();
  };
  const over = (event) => since !== null && release(event);

  button.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    handled = true;
    button.setPointerCapture?.(event.pointerId);
    press(event);
  });
  button.addEventListener("pointerup", over);
  button.addEventListener("pointercancel", over);
  button.addEventListener("contextmenu", (event) => since !== null && event.preventDefault());
  button.addEventListener("keydown", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    if (!event.repeat) press(event);
  });
  button.addEventListener("keyup", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    release(event);
  });
  // Enter, a screen reader and voice control click without a press.
  button.addEventListener("click", (event) => {
    if (!handled || event.detail === 0) {
      press(event);
      since = null;
      if (wasOn) talk.finish();
      else talk.keep();
    }
    handled = false;
  });
  document.addEventListener("keydown", (event) => {
    if (!event.altKey || event.ctrlKey || event.metaKey || event.code !== COMBINATION || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    if (!event.repeat) press(event);
  });
  document.addEventListener("keyup", (event) => (event.code === COMBINATION || event.key === "Alt") && over(event));
  // A page that is left does not hear the key being let go; one that the browser asks about the microphone is not left.
  window.addEventListener("blur", () => {
    if (since === null) return;
    since = null;
    if (talk.state === "starting") talk.keep();
    else talk.finish();
  });
}
