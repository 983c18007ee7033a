// Python of an answer, run once in a sandbox without network or secrets; what it writes stands under the block.
import { h, icon } from "../core/dom.js";
import { api } from "../core/api.js";

const PYTHON = new Set(["python", "py", "python3"]);

/** The button for a block of code; null where it is no Python, or nothing can run here. `box` gives the block's element. */
export function runButton(language, code, box) {
  if (!PYTHON.has(language) || document.getElementById("log")?.dataset.sandbox !== "yes") return null;
  const button = h("button", { type: "button", class: "btn btn-quiet btn-small code-run", title: "Run it in the sandbox, without network" }, icon("play"), "Run");
  button.addEventListener("click", () => run(button, code.textContent, box()));
  return button;
}

async function run(button, code, box) {
  const output = place(box);
  button.disabled = true;
  output.replaceChildren(h("p", { class: "code-output-head" }, h("span", { class: "spinner", "aria-hidden": "true" }), "Running in the sandbox…"));
  try {
    const done = await api("POST", "/api/v1/run/", { code });
    const seconds = `${(done.duration_ms / 1000).toFixed(1)} s`;
    const head = done.ok ? `Output, ${seconds}` : `It failed after ${seconds}`;
    const words = [done.stdout, done.error?.message].filter(Boolean).join("\n") || "It wrote nothing.";
    output.replaceChildren(h("p", { class: done.ok ? "code-output-head" : "code-output-head code-output-failed" }, icon(done.ok ? "check" : "alert"), head), h("pre", { tabindex: "0", dir: "auto", "aria-label": "Output" }, words));
  } catch (error) {
    output.replaceChildren(h("p", { class: "code-output-head code-output-failed" }, icon("alert"), error.message));
  }
  button.disabled = false;
}

/** What the last run wrote stands in one place; a screen reader is told. */
function place(box) {
  const known = box.querySelector(".code-output");
  const output = known ?? h("div", { class: "code-output", role: "status" });
  if (!known) box.append(output);
  return output;
}
