// Reading answers aloud and taking dictation, with what the browser itself offers; where it offers nothing, nothing is shown.
import { iconButton } from "../core/dom.js";
import { toast } from "../core/toasts.js";

const PIECE = 220; // characters; some voices stop in the middle of longer ones
const MAKER_LISTENS = "Dictate. Some browsers send what you say to their maker to have it written down.";
const REFUSED = new Set(["not-allowed", "service-not-allowed", "audio-capture"]);

let stopReading = null; // takes the present reading back; null while nobody speaks

/** A button that reads aloud what `textOf` gives, and stops it again; null where the browser has no voice. */
export function readAloudButton(textOf) {
  if (!window.speechSynthesis || !window.SpeechSynthesisUtterance) return null;
  const button = iconButton("speaker", "Read aloud", () => (button.getAttribute("aria-pressed") === "true" ? stopReading?.() : read(textOf(), button)), { "aria-pressed": "false" });
  return button;
}

function read(text, button) {
  stopReading?.();
  const pieces = piecesOf(text);
  if (pieces.length === 0) return;
  const show = (on) => {
    button.setAttribute("aria-pressed", String(on));
    button.title = on ? "Stop reading" : "Read aloud";
    button.setAttribute("aria-label", button.title);
    button.querySelector("use").setAttribute("href", on ? "#i-stop" : "#i-speaker");
  };
  const stop = () => {
    stopReading = null;
    window.speechSynthesis.cancel();
    show(false);
  };
  stopReading = stop;
  show(true);
  pieces.forEach((piece, index) => {
    const words = new SpeechSynthesisUtterance(piece);
    const over = () => stopReading === stop && stop();
    if (index === pieces.length - 1) words.onend = over;
    words.onerror = over;
    window.speechSynthesis.speak(words);
  });
}

/** Sentences, and parts of long ones. */
function piecesOf(text) {
  const sentences = text.match(/[^.!?\n]+[.!?]*/g) ?? [];
  return sentences.flatMap((sentence) => sentence.trim().match(new RegExp(`.{1,${PIECE}}(?:\\s|$)|.{1,${PIECE}}`, "g")) ?? []);
}

addEventListener("pagehide", () => stopReading?.());

/** Makes the button beside the field write down what is said; it stays hidden where the browser cannot. → ends it at once. */
export function startDictation(button, field) {
  const Recognition = window.SpeechRecognition ?? window.webkitSpeechRecognition;
  if (!button || !Recognition) return () => {};
  let recognition = null;
  const show = (on) => {
    button.setAttribute("aria-pressed", String(on));
    button.title = on ? "Stop dictation" : MAKER_LISTENS;
    button.setAttribute("aria-label", on ? "Stop dictation" : "Dictate");
  };
  const stop = () => recognition?.stop();
  const start = () => {
    const before = field.value && !/\s$/.test(field.value) ? `${field.value} ` : field.value;
    recognition = new Recognition();
    Object.assign(recognition, { continuous: true, interimResults: true, lang: navigator.language });
    recognition.onresult = (event) => {
      field.value = before + [...event.results].map((result) => result[0].transcript.trim()).join(" ");
      field.dispatchEvent(new Event("input", { bubbles: true }));
    };
    recognition.onerror = (event) => REFUSED.has(event.error) && toast("The browser does not let Izzy use the microphone.", { kind: "danger" });
    recognition.onend = () => {
      recognition = null;
      show(false);
    };
    recognition.start();
    show(true);
    field.focus();
  };
  show(false);
  button.hidden = false;
  button.addEventListener("click", () => (recognition ? stop() : start()));
  return () => {
    if (!recognition) return;
    // What is heard after the message was sent belongs to nothing.
    recognition.onresult = null;
    recognition.abort();
  };
}
