// What is said becomes the text of a field, by the browser's own recogniser. Nothing that stands in the field is ever lost: what is
// heard goes behind it, also where somebody types meanwhile.
import { heard } from "./heard.js";

const UNHEARD = "Nothing was heard. Is the microphone the right one, and switched on?";
const PROBLEMS = {
  "not-allowed": "The browser does not let Izzy use the microphone. You can allow it in the browser's settings of this site.",
  "service-not-allowed": "The browser does not let Izzy use the microphone. You can allow it in the browser's settings of this site.",
  "audio-capture": "No microphone was found.",
  network: "The browser cannot reach the service that writes down what you say. What it has heard so far stays in the field.",
  "language-not-supported": "The browser cannot write down this language. Choose another under Settings, Voice.",
  "no-speech": UNHEARD,
};
const INSECURE = "Browsers allow the microphone only over https, or on this computer itself.";

/** The browser's recogniser; undefined where it has none. */
export const recogniser = () => window.SpeechRecognition ?? window.webkitSpeechRecognition;

export class Dictation {
  #recognition = null;
  #before = ""; // what stands in front of what is heard
  #from = 0; // results before this one stand in it already
  #seen = 0;
  #taken = []; // the last words of what stands in it, which a result may say again
  #last = [];
  #written = null; // what this put into the field last
  #heard = false; // anything since it began
  #failed = false;
  #due = null; // when it is sent, in milliseconds; null: not by itself
  #tick = null;
  held = false; // the button or key is held down: nothing is sent before it is let go

  /** on: {state("off" | "starting" | "listening" | "sending", seconds left), heard(), send(), problem(sentence)} */
  constructor(field, settings, on) {
    Object.assign(this, { field, settings, on, state: "off" });
    field.addEventListener("input", () => this.#onInput());
  }

  get isOn() {
    return this.state !== "off";
  }

  start({ held = false } = {}) {
    this.cancel();
    this.held = held;
    const Recognition = recogniser();
    const recognition = new Recognition();
    Object.assign(recognition, { continuous: true, interimResults: true, lang: this.settings().language });
    this.#recognition = recognition;
    this.#last = [];
    this.#takeUp(0);
    this.#heard = this.#failed = false;
    const mine = (act) => (event) => this.#recognition === recognition && act(event);
    recognition.onstart = mine(() => this.#show("listening"));
    recognition.onresult = mine((event) => this.#onResult(event));
    recognition.onerror = mine((event) => this.#onError(event));
    recognition.onend = mine(() => this.#onEnd());
    try {
      recognition.start();
    } catch {
      this.#recognition = null;
      this.on.problem(PROBLEMS["not-allowed"]);
      return;
    }
    if (this.state === "off") this.#show("starting");
  }

  /** The button was let go after a short press: it stays on. */
  keep() {
    this.held = false;
    if (this.#heard) this.#waitForSilence();
    else this.on.state(this.state, this.seconds);
  }

  /** No more is listened to; what was said last is still written down, and sent where that is wanted. */
  finish() {
    this.held = false;
    if (this.#recognition) this.#recognition.stop();
    else this.cancel();
  }

  /** Ends at once: nothing more is written, nothing is sent. What stands in the field stays. */
  cancel() {
    const recognition = this.#recognition;
    this.#recognition = null;
    this.held = false;
    this.#wait(null);
    this.#show("off");
    recognition?.abort();
  }

  #takeUp(from) {
    const { value } = this.field;
    this.#before = value && !/\s$/.test(value) ? `${value} ` : value;
    this.#from = from;
    this.#taken = this.#last;
    this.#written = null;
  }

  #onResult(event) {
    if (this.state === "starting") this.#show("listening");
    if (this.#written !== null && this.field.value !== this.#written) this.#takeUp(this.#seen);
    this.#seen = event.results.length;
    const { words, last } = heard([...event.results].slice(this.#from), this.#taken);
    this.#last = last;
    if (!words) return;
    this.#heard = true;
    this.#written = this.field.value = this.#before + words;
    this.field.dispatchEvent(new Event("input", { bubbles: true }));
    this.on.heard();
    this.#waitForSilence();
  }

  #onError(event) {
    const sentence = window.isSecureContext === false && event.error === "not-allowed" ? INSECURE : PROBLEMS[event.error];
    this.#wait(null);
    if (event.error === "aborted" || (event.error === "no-speech" && this.#heard)) return;
    this.#failed = true;
    this.on.problem(sentence ?? "The browser could not write down what you said. What it has heard so far stays in the field.");
  }

  /** Ended by itself or by `finish`: what was heard waits as long as silence would. */
  #onEnd() {
    this.#recognition = null;
    this.held = false;
    if (this.#heard && !this.#failed && this.settings().pause > 0) {
      if (this.#due === null) this.#waitForSilence();
    } else this.cancel();
  }

  #waitForSilence() {
    const { pause } = this.settings();
    this.#wait(pause > 0 && !this.held ? Date.now() + pause * 1000 : null);
  }

  /** Counts down to the sending; every word that is heard begins it anew. */
  #wait(due) {
    clearTimeout(this.#tick);
    this.#due = due;
    if (due === null) return;
    const left = due - Date.now();
    const seconds = Math.ceil(left / 1000);
    if (left <= 0) {
      this.cancel();
      this.on.send();
      return;
    }
    // Between two words nobody is told of a sending that does not come.
    const quiet = this.#recognition !== null && left > this.settings().pause * 1000 - 700;
    this.#show(quiet ? "listening" : "sending", seconds);
    this.#tick = setTimeout(() => this.#wait(due), quiet ? 700 : left - (seconds - 1) * 1000);
  }

  /** Whoever types does not want it to go just now; what is heard goes on behind what they type. */
  #onInput() {
    if (this.#due === null || this.field.value === this.#written) return;
    if (this.#recognition) {
      this.#wait(null);
      this.#show("listening");
    } else this.cancel();
  }

  #show(state, seconds = 0) {
    if (this.state === state && this.seconds === seconds) return;
    Object.assign(this, { state, seconds });
    this.on.state(state, seconds);
  }
}
