// Deep memory on its card: the question is turned this way and that, searched from several angles, and what came of it.
import { addressed } from "../core/addressing.js";
import { h, icon, isolated } from "../core/dom.js";
import { parsed, shorten } from "./format.js";
import { MemoryCard } from "./memory-card.js";

const SHOWN = 10;

export function isDeep(call) {
  return call.name === "deep_memory";
}

/** A line for one of its three steps, or null for any other progress. */
export function deepLine(data) {
  if (data.status === "expanding") return isolated(`Thinking of other words for “${shorten(String(data.query ?? ""))}”`);
  if (data.status === "searching") return `Searching from ${count(asList(data.searches).length, "angle")}`;
  if (data.status === "found") return data.count > 0 ? `Found ${count(data.count, "memory", "memories")}` : "Found nothing";
  return null;
}

/** The card's body: the question, how it was searched, what was made of it, and the memories, each to be corrected. */
export function deepParts(call) {
  const said = call.isError ? null : parsed(call.result)?.summary;
  const question = h("dl", { class: "tool-input" }, h("dt", {}, "question"), h("dd", {}, String(call.input.query ?? "")));
  return [question, ...(said ? [h("p", { class: "deep-summary" }, addressed(said))] : []), deepSteps(call, call.state === "done")];
}

/** The steps so far, the newest with what belongs to it; from the events, else from the stored result. */
export function deepSteps(call, asCards = false) {
  const steps = call.progress.length > 0 ? call.progress : fromResult(call);
  const known = steps.filter((data) => data && typeof data === "object" && deepLine(data));
  return h("ol", { class: "deep-steps" }, known.map((data) => h("li", {}, h("span", { class: "deep-line" }, icon(iconOf(data)), deepLine(data)), chips(data), memories(data, asCards))));
}

function fromResult(call) {
  const result = call.isError ? null : parsed(call.result);
  if (!result || !Array.isArray(result.memories)) return [];
  const found = { status: "found", count: result.count, memories: result.memories };
  return [{ status: "expanding", query: result.query }, { status: "searching", searches: result.searches }, found];
}

function iconOf(data) {
  if (data.status === "found") return "memory";
  return data.status === "searching" ? "search" : "question";
}

function chips(data) {
  if (data.status !== "searching") return null;
  return h("ul", { class: "deep-chips" }, asList(data.searches).map((words) => h("li", { class: "badge" }, asList(words).join(" · "))));
}

function memories(data, asCards) {
  const found = asList(data.memories).slice(0, SHOWN);
  if (data.status !== "found" || found.length === 0) return null;
  if (asCards) return h("ul", { class: "deep-cards deep-found" }, found.map((memory) => new MemoryCard({ ...memory, text: String(memory.text ?? "") }).element));
  return h("ul", { class: "deep-found" }, found.map((memory) => h("li", {}, addressed(String(memory.text ?? "")))));
}

function asList(value) {
  return Array.isArray(value) ? value : [];
}

function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}
