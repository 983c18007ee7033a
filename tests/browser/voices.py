"""Stand-ins for the browser's voice and recogniser, which note what they are asked for: a headless browser has neither."""

ENGINES = """
window.spoken = [];
window.silenced = 0;
window.SpeechSynthesisUtterance = class { constructor(text) { this.text = text; } };
Object.defineProperty(window, "speechSynthesis", { value: {
  speak(words) { if (words.text) window.spoken.push(words); },
  cancel() { window.silenced += 1; },
} });
window.SpeechRecognition = class {
  start() { window.listening = this; this.onstart?.(); }
  stop() { this.onend(); }
  abort() { this.onend(); }
  hear(...said) { this.onresult?.({ results: said.map((transcript) => [{ transcript }]) }); }
  /** As Chrome on Android: each growth of what is said is a final result of its own. */
  guess(...said) { this.onresult?.({ results: said.map((transcript) => Object.assign([{ transcript, confidence: 0 }], { isFinal: true })) }); }
};
"""

SHORT_PRESS = """() => {
  const keys = { key: "v", code: "KeyV", altKey: true, bubbles: true, cancelable: true };
  for (const type of ["keydown", "keyup"]) document.activeElement.dispatchEvent(new KeyboardEvent(type, keys));
}"""
"""Alt+V, pressed and let go at once: between two keys of Playwright's a busy machine may hold it for long."""
