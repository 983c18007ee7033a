// A quiet line above the first turn that the model still has word for word; opened, it shows the summary of the rest.
import { h, icon } from "../core/dom.js";

/** summary: {text, by, untrusted, made_at, messages, before} */
export function summedUp(summary) {
  const what = summary.messages === 1 ? "The message above is" : `The ${summary.messages.toLocaleString()} messages above are`;
  const note = summary.by === "extract" ? "It was made without a model, by taking sentences out of what was said." : null;
  return h(
    "details",
    { class: "summed-up" },
    h("summary", {}, icon("clock"), h("span", {}, `${what} summed up`), h("span", { class: "tool-chevron" }, icon("down"))),
    h("div", { class: "summed-up-body" }, h("p", { class: "faint small" }, "The model goes on with this summary. The messages themselves stay here and can be searched. ", note), h("p", { class: "summed-up-text" }, summary.text)),
  );
}

/** Puts the summary to the turn it stands before, if that turn is on the page. */
export function placeSummary(state) {
  for (const turn of state.turns) turn.summary = state.summary !== null && turn.id === state.summary.before ? state.summary : null;
}
