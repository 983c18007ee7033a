// The browser's voice. One thing is spoken at a time: what begins to speak ends what did before.
import { iconButton } from "../core/dom.js";

const PIECE = 220; // characters; some voices stop in the middle of longer ones

let present = null;

/** Whether the browser has a voice at all. */
export function canSpeak() {
  return Boolean(window.speechSynthesis && window.SpeechSynthesisUtterance);
}

/** Something to be spoken, piece by piece, as it becomes known. `onEnd(failed)` is called once: all is said, it was stopped, or it failed. */
export class Speech {
  #left = []; // kept here, since a browser may drop what nothing else holds, and its events with it
  #closed = false;
  #over = false;

  constructor({ language, rate }, onEnd) {
    present?.stop();
    present = this;
    Object.assign(this, { language, rate, onEnd });
  }

  get isSpeaking() {
    return this.#left.length > 0;
  }

  say(sentence) {
    if (this.#over) return;
    for (const piece of piecesOf(sentence)) this.#speak(piece);
  }

  /** Nothing more will come. */
  close() {
    this.#closed = true;
    this.#endIfSaid();
  }

  stop() {
    if (!this.#over) this.#end(false);
  }

  #speak(piece) {
    const words = new SpeechSynthesisUtterance(piece);
    Object.assign(words, { lang: this.language, rate: this.rate });
    const voice = voiceFor(this.language);
    if (voice) words.voice = voice;
    words.onend = () => {
      // What was queued before it has been spoken too, whether its end was told or not.
      this.#left.splice(0, this.#left.indexOf(words) + 1);
      this.#endIfSaid();
    };
    words.onerror = (event) => !this.#over && this.#end(event?.error ?? "failed");
    this.#left.push(words);
    window.speechSynthesis.speak(words);
  }

  #endIfSaid() {
    if (this.#closed && !this.#over && this.#left.length === 0) this.#end(false);
  }

  #end(failed) {
    this.#over = true;
    if (present === this) present = null;
    this.#left = [];
    window.speechSynthesis.cancel();
    this.onEnd(failed);
  }
}

/** Some browsers let a page speak later only if it has spoken, even nothing, while something was being pressed. */
export function allowSpeaking() {
  if (allowed || !canSpeak() || present) return;
  allowed = true;
  const nothing = new SpeechSynthesisUtterance("");
  nothing.volume = 0;
  window.speechSynthesis.speak(nothing);
}
let allowed = false;

/** A voice of the language, one that needs no network before others; null leaves the choice to the browser. */
function voiceFor(language) {
  const wanted = language.toLowerCase();
  const own = (window.speechSynthesis.getVoices?.() ?? []).map((voice) => ({ voice, lang: voice.lang.replace("_", "-").toLowerCase() }));
  const fitting = own.filter(({ lang }) => lang === wanted);
  const near = fitting.length > 0 ? fitting : own.filter(({ lang }) => lang.split("-")[0] === wanted.split("-")[0]);
  near.sort((one, other) => Number(other.voice.default) - Number(one.voice.default) || Number(other.voice.localService) - Number(one.voice.localService));
  return near[0]?.voice ?? null;
}

function piecesOf(sentence) {
  return sentence.trim().match(new RegExp(`.{1,${PIECE}}(?:\\s|$)|.{1,${PIECE}}`, "gs")) ?? [];
}

/** A button that reads aloud the sentences that `sentences()` gives, and stops it again; null where the browser has no voice. */
export function readAloudButton(sentences, settings) {
  if (!canSpeak()) return null;
  let speech = null;
  const show = (on) => {
    button.setAttribute("aria-pressed", String(on));
    button.title = on ? "Stop reading" : "Read aloud";
    button.setAttribute("aria-label", button.title);
    button.querySelector("use").setAttribute("href", on ? "#i-stop" : "#i-speaker");
  };
  const button = iconButton("speaker", "Read aloud", () => {
    if (speech) {
      speech.stop();
      return;
    }
    const all = sentences();
    if (all.length === 0) return;
    speech = new Speech(settings(), () => {
      speech = null;
      show(false);
    });
    show(true);
    for (const sentence of all) speech.say(sentence);
    speech?.close();
  }, { "aria-pressed": "false" });
  return button;
}

/** Stops whatever is being spoken; false where nothing is. */
export function silence() {
  const spoke = present !== null;
  present?.stop();
  return spoke;
}

addEventListener("pagehide", silence);
