// Talking with Izzy: what is dictated goes into the composer, and the answer to what was spoken is read aloud as it comes, with
// what Izzy asks. It says by a line above the field what it is doing.
import { humanName } from "../chat/format.js";
import { ENDED } from "../chat/state.js";
import { permissionOf } from "../chat/tool-words.js";
import { Dictation, recogniser } from "./dictation.js";
import { holdToTalk } from "./hold.js";
import { allowSpeaking, canSpeak, silence, Speech } from "./speaker.js";
import { split } from "./sentences.js";
import { voiceSettings } from "./settings.js";

const TALK = "Dictate (Alt V). Hold it to talk for as long as you hold it. Some browsers send what you say to their maker to have it written down.";
const SAID = { off: "Stopped listening", sending: "This is about to be sent. Escape keeps it in the field." };

export class Voice {
  #dictation = null;
  #button;
  #bar;
  #follows = null; // {clientId, id, said, asked, waits, speech} of the turn that is read as it comes
  #spoke = false; // the user's last words here were spoken
  #shown = "off";
  #problem = ""; // why something could not be heard or spoken, until it is read

  /** composer: {heard(), submit(), announce(text, isUrgent)} */
  constructor(form, field, composer) {
    this.composer = composer;
    this.#button = form.querySelector("[data-dictate]");
    this.#bar = form.querySelector("[data-voice]");
    this.#bar.querySelector("button").addEventListener("click", () => this.#end());
    window.addEventListener("keydown", (event) => this.#onKey(event), { capture: true });
    window.addEventListener("pagehide", () => this.leave());
    if (!recogniser()) return;
    this.#dictation = new Dictation(field, voiceSettings, {
      state: () => this.#show(),
      heard: () => composer.heard(),
      send: () => composer.submit(),
      problem: (sentence) => this.#tell(sentence),
    });
    const dictation = this.#dictation;
    holdToTalk(this.#button, {
      get state() {
        return dictation.state;
      },
      start: () => this.#listen(field),
      keep: () => dictation.keep(),
      finish: () => dictation.finish(),
    });
    this.#button.hidden = false;
    this.#show();
  }

  /** Whether the answer of a turn is read aloud as it comes: then nothing else need say it. */
  reads(turn) {
    return this.#isFollowed(turn);
  }

  /** The message is on its way: what is heard from now on belongs to nothing. */
  sending() {
    this.#dictation?.cancel();
  }

  /** A message or an answer was sent. A spoken one's turn ({clientId} or {id}, and how many sentences it has) is read aloud. */
  sent(spoken, { clientId = null, id = null, said = 0 } = {}) {
    this.leave();
    this.#spoke = spoken;
    if (!spoken || !voiceSettings().read || !canSpeak()) return;
    this.#follows = { clientId, id, said, asked: new Set(), speech: null };
    this.#show();
  }

  /** Nothing of this conversation is spoken or listened to any more. */
  leave() {
    this.#problem = "";
    this.#dictation?.cancel();
    silence();
    this.#spoke = false;
    this.#follows = null;
    this.#show();
  }

  /** A turn has been drawn. sentences(): what is said of it so far; the last one may still grow while it runs. */
  drawn(turn, sentences) {
    const follows = this.#follows;
    if (!this.#isFollowed(turn)) return;
    follows.id ??= turn.id;
    const all = sentences();
    const until = turn.state === "running" && turn.segments.at(-1)?.type === "text" ? all.length - 1 : all.length;
    for (; follows.said < until; follows.said += 1) this.#say(all[follows.said]);
    // What has been answered here already waits for nothing but the server.
    const asks = turn.state === "waiting" ? turn.segments.filter((segment) => segment.asks && segment.answer === null) : [];
    follows.waits = asks.length > 0;
    for (const call of asks) this.#ask(call.id, questionOf(call));
    if (ENDED.has(turn.state) || asks.length > 0) this.#finish(turn);
    this.#show();
  }

  /** What a builder asks, while the user talks with Izzy. */
  onFrame(frame) {
    if (frame.type !== "build" || frame.message.type !== "question" || !this.#spoke || !voiceSettings().read || !canSpeak()) return;
    this.#follows ??= { clientId: null, id: null, said: 0, asked: new Set(), speech: null };
    this.#ask(frame.message.id, `The builder asks: ${frame.message.payload.text ?? "may it go on?"}`);
    if (this.#follows?.id === null && this.#follows.clientId === null) this.#follows.speech?.close();
  }

  #isFollowed(turn) {
    const follows = this.#follows;
    return follows !== null && ((follows.id !== null && turn.id === follows.id) || (follows.clientId !== null && turn.clientId === follows.clientId));
  }

  #listen(field) {
    this.#problem = "";
    silence();
    this.#follows = null;
    allowSpeaking();
    this.#dictation.start({ held: true });
    field.focus({ preventScroll: true });
  }

  #say(text) {
    const follows = this.#follows;
    if (!follows) return;
    follows.speech ??= new Speech(voiceSettings(), (failed) => {
      // After a yes to what it waits for it is read on.
      follows.speech = null;
      if (this.#follows === follows && !follows.waits) this.#follows = null;
      if (failed && failed !== "interrupted" && failed !== "canceled") this.#tell("The browser could not speak. The answer can be read aloud by its button.");
      else this.#show();
    });
    follows.speech.say(text);
  }

  #ask(id, text) {
    if (this.#follows?.asked.has(id)) return;
    this.#follows?.asked.add(id);
    for (const sentence of split(text, voiceSettings().language)) this.#say(sentence);
  }

  /** All that comes is known. */
  #finish(turn) {
    if (turn.state === "failed" || turn.state === "interrupted") this.#ask(turn.key, turn.error?.message || "Something went wrong.");
    if (turn.state === "stopped" || (!this.#follows?.speech && !this.#follows?.waits)) {
      this.#follows?.speech?.stop();
      this.#follows = null;
    } else this.#follows.speech?.close();
  }

  /** Escape ends what is heard or said, before it stops an answer. */
  #onKey(event) {
    if (event.key !== "Escape" || event.isComposing || document.querySelector("dialog[open], [popover]:popover-open")) return;
    if (!this.#end()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }

  /** Ends the reading of this answer. */
  #quiet() {
    const { speech } = this.#follows;
    this.#follows = null;
    speech.stop();
  }

  #tell(sentence) {
    this.#problem = sentence;
    this.composer.announce(sentence, true);
    this.#show();
  }

  #end() {
    const reported = this.#problem !== "";
    this.#problem = "";
    if (reported) this.#show();
    const on = this.#dictation?.isOn || this.#follows?.speech;
    if (this.#dictation?.isOn) this.#dictation.cancel();
    else if (this.#follows?.speech) this.#quiet();
    else return silence() || reported;
    return Boolean(on);
  }

  #show() {
    const { state = "off", seconds = 0, held = false } = this.#dictation ?? {};
    const speaking = this.#follows?.speech?.isSpeaking ?? false;
    const now = state !== "off" ? state : speaking ? "speaking" : this.#problem ? "problem" : this.#follows && !this.#follows.waits ? "thinking" : "off";
    const words = {
      off: "",
      starting: "Waiting for the microphone…",
      listening: held ? "Listening… Let go when you are done." : "Listening…",
      sending: `Sends in ${seconds} s`,
      thinking: "Izzy is thinking…",
      speaking: "Izzy is speaking",
      problem: this.#problem,
    }[now];
    this.#button.setAttribute("aria-pressed", String(state !== "off"));
    this.#button.setAttribute("aria-label", state !== "off" ? "Stop dictation" : "Dictate");
    this.#button.title = state !== "off" ? "Stop dictation" : TALK;
    this.#bar.hidden = now === "off";
    this.#bar.dataset.state = now;
    this.#bar.querySelector("[data-voice-words]").textContent = words;
    const act = this.#bar.querySelector("button");
    act.hidden = now === "thinking";
    act.textContent = { sending: "Keep it here", problem: "Close" }[now] ?? "Stop";
    act.title = "Esc";
    // Said once for each state, not for every second; what is spoken need not be said too.
    if (now !== this.#shown && !["speaking", "thinking", "problem"].includes(now) && !["speaking", "problem"].includes(this.#shown)) this.composer.announce(SAID[now] ?? words);
    this.#shown = now;
  }
}

/** A question, or what is to be allowed, as somebody says it. */
function questionOf(call) {
  if (call.asks === "question") return [call.question, call.reason].filter(Boolean).join("\n");
  const what = call.permission ? `“${humanName(call.permission.capability)}” asks for your permission.` : `Izzy would like to ${permissionOf(call.name)}. May it?`;
  return [what, call.reason].filter(Boolean).join("\n");
}
