// How the user wants to be heard and spoken to: their preferences, which the page brings along on the composer.

/** {language, rate, pause (seconds of silence, 0: never), read} */
export function voiceSettings() {
  const { speechLanguage = "", speechRate = "1", speechPause = "0", speechRead = "" } = document.getElementById("composer")?.dataset ?? {};
  return { language: speechLanguage || navigator.language || "en", rate: Number(speechRate) || 1, pause: Number(speechPause) || 0, read: speechRead === "yes" };
}
