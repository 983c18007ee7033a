// The part of the settings about voice: shown as far as the browser has what it is about.
import { recogniser } from "../voice/dictation.js";
import { canSpeak, silence, Speech } from "../voice/speaker.js";

const HEARS = ["speech_pause", "speech_short"];
const field = (name) => document.getElementById(`id_${name}`);
const section = document.querySelector("[data-voice]");

if (section && (canSpeak() || recogniser())) {
  section.hidden = false;
  if (!recogniser()) for (const name of [...HEARS, "speech_read"]) field(name).closest(".field").hidden = true;
  if (!canSpeak()) for (const name of ["speech_rate", "speech_read"]) field(name).closest(".field").hidden = true;
  offerToTry(section.querySelector("[data-voice-try]"));
}

/** A button that says how it sounds with what is chosen, saved or not. */
function offerToTry(button) {
  button.hidden = !canSpeak();
  const show = (on) => {
    button.setAttribute("aria-pressed", String(on));
    button.textContent = on ? "Stop" : "Try the voice";
  };
  button.addEventListener("click", () => {
    if (silence()) return;
    const language = field("speech_language").value || navigator.language || "en";
    const speech = new Speech({ language, rate: Number(field("speech_rate").value) || 1 }, () => show(false));
    show(true);
    speech.say(`${field("speech_language").selectedOptions[0].textContent}. Izzy, 1, 2, 3.`);
    speech.close();
  });
}
