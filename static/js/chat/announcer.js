// Speaks for screen readers: the log itself is silent while text streams, a finished answer is read once.
const LONGEST = 1500;

export class Announcer {
  constructor(polite, urgent) {
    this.polite = polite;
    this.urgent = urgent;
  }

  say(text) {
    this.polite.textContent = text.slice(0, LONGEST);
  }

  /** For what waits on the reader or went wrong. */
  interrupt(text) {
    this.urgent.textContent = text.slice(0, LONGEST);
  }

  /** What a frame means to someone who does not see the page. What is `spoken` by the browser's voice is not said a second time. */
  onFrame(frame, view, spoken = false) {
    if (spoken && ["turn_started", "response", "question", "approval_requested"].includes(frame.type)) return;
    if (frame.type === "turn_started") this.say("Izzy is answering");
    else if (frame.type === "model_retry") this.say(`${frame.message} Izzy tries again.`);
    else if (frame.type === "response" && !frame.pending_question && !frame.pending_approval) this.say(`Izzy: ${view?.plainText() || frame.text || "done"}`);
    else if (frame.type === "question") this.interrupt(["Izzy asks:", frame.text, frame.reason].filter(Boolean).join(" "));
    else if (frame.type === "approval_requested") this.interrupt(`Izzy asks for permission to use ${frame.name.replaceAll("_", " ")}`);
    else if (frame.type === "turn_stopped") this.say("Stopped");
    else if (frame.type === "error") this.interrupt(frame.message);
  }
}
