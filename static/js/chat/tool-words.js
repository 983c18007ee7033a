// What a tool call is called on its card: a sentence about this call rather than the function's name.
import { addressed } from "../core/addressing.js";
import { deepLine } from "./deep-memory.js";
import { notRun } from "./not-run.js";
import { hostOf, webLine } from "./web.js";
import { humanName, parsed, shorten } from "./format.js";

/** What came of a call that was to write a note and did not, by the status of its result. */
const STATUS_WORDS = { pending: "Waits for your review", known: "Known already" };
const WRITES = new Set(["written", "changed", "deleted"]);

let tools = null;

/** How people are told of a tool, as the server gives it: {title, doing, done, shows, icon, variants, notes}. */
function toolOf(name) {
  tools ??= JSON.parse(document.getElementById("tool-words")?.textContent ?? "{}");
  if (Object.hasOwn(tools, name)) return tools[name];
  const plain = plainName(name);
  const words = plain === name ? { title: `Use “${humanName(name)}”`, doing: humanName(name), done: humanName(name) } : { title: `Run “${humanName(plain)}”`, doing: `Running ${plain}`, done: `Ran ${plain}` };
  return { ...words, shows: null, icon: "tool", variants: {}, notes: "" };
}

const RUN_STEPS = {
  queued: (data) => (data.ahead > 0 ? `Waiting, ${data.ahead} ahead` : "Waiting for its turn"),
  preparing: () => "Preparing a fresh sandbox",
  installing: () => "Installing what it needs",
  running: () => "Running",
  output: (data) => String(data.text ?? "").trimEnd(),
};

/** A capability's name without the prefix it has as a tool. */
function plainName(name) {
  return String(name ?? "").replace(/^cap_/, "");
}

/** What the reader is asked to allow, as the end of "Izzy would like to …". */
export function permissionOf(name) {
  const { title } = toolOf(name);
  return title.charAt(0).toLowerCase() + title.slice(1);
}

/** → {title, detail, icon, isMemory} */
export function describeCall(call) {
  const tool = toolOf(call.name);
  const text = asText(call.question || shownOf(tool, call.input));
  const detail = shorten(tool.notes ? addressed(text) : text);
  return { title: titleOf(tool, call), detail, icon: tool.icon, isMemory: WRITES.has(tool.notes) };
}

function titleOf(tool, call) {
  const [, doing, done] = (own(tool.variants, call.input.command) ?? ["", tool.doing, tool.done]).map((words) => words.replace("{name}", () => plainName(call.input.name)));
  if (doing === done) return done;
  if (call.state === "error") return `${doing}: ${notRun(call) ? "not done" : "failed"}`;
  if (call.state !== "done") return doing;
  return (WRITES.has(tool.notes) && own(STATUS_WORDS, parsed(call.result)?.status)) || done;
}

/** What of the input stands behind the title; of a tool that is none of Izzy's own its texts and numbers. */
function shownOf({ shows }, input) {
  const given = shows ? shows.map((name) => input[name]).find(Boolean) : input;
  return isObject(given) ? plainValues(given) : given;
}

/** Of a table by names that a model chose: `constructor` is none of its rows. */
function own(table, name) {
  return Object.hasOwn(table, String(name)) ? table[name] : undefined;
}

/** Whether what a call wanted to remember has to be reviewed first. */
export function waits(call) {
  return WRITES.has(toolOf(call.name).notes) && call.state === "done" && parsed(call.result)?.status === "pending";
}

/** The note a call has written or deleted, so that the reader can correct it or bring it back: {item, gone}. */
export function noteOf(call) {
  const { notes } = toolOf(call.name);
  if (!WRITES.has(notes) || call.state !== "done" || waits(call)) return null;
  const result = parsed(call.result);
  const id = result?.note_id ?? call.input.note_id;
  if (!id) return null;
  const gone = notes === "deleted";
  return { item: { id, text: result?.text ?? call.input.content ?? "" }, gone };
}

function plainValues(input) {
  const isPlain = (value) => ["string", "number"].includes(typeof value);
  return Object.values(input ?? {}).filter((value) => isPlain(value) || (Array.isArray(value) && value.every(isPlain))).flat();
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A value as people read it: an address without its scheme and the slash at its end, and no ids. */
function asText(value) {
  if (Array.isArray(value)) return value.join(", ");
  if (typeof value !== "string" || /^note-[0-9a-f-]+$/.test(value)) return "";
  return hostOf(value) ? value.replace(/^https?:\/\/(www\.)?/, "").replace(/\/$/, "") : value;
}

/** What a note said, as far as this conversation has shown it; "" where it has not. */
export function noteText(turns, id) {
  const same = (other) => Boolean(other) && String(other).replace(/^note-/, "") === String(id).replace(/^note-/, "");
  for (const turn of turns.toReversed()) {
    for (const call of turn.segments.toReversed()) {
      if (!/^(memory_|store_memory)/.test(call.name)) continue; // what pages and capabilities answer could look the same
      const result = parsed(call.result);
      if (Array.isArray(result)) {
        const hit = result.find((item) => same(item?.note_id));
        if (hit) return hit.text ?? "";
      } else if (call.input.content && same(result?.note_id)) {
        return call.input.content;
      }
    }
    const surfaced = turn.memories.find((item) => same(item.id) || (item.handle && item.handle === id));
    if (surfaced) return surfaced.text;
  }
  return "";
}

/** What a conversation is called, as far as a list or a search in this one has said it; "" where none has. */
export function conversationTitle(turns, id) {
  const calls = turns.flatMap((turn) => turn.segments).filter((call) => /^conversation_(list|search)$/.test(call.name));
  const entries = calls.map((call) => parsed(call.result)).flatMap((result) => result?.conversations ?? result?.results ?? []);
  return entries.findLast((entry) => (entry?.conversation_id ?? entry?.id) === id)?.title ?? "";
}

/** Whether a piece of progress only says how far a run is. */
export function isStep(data) {
  return Object.hasOwn(RUN_STEPS, data?.status ?? "") && data.status !== "output";
}

/** A line for the newest progress of a running call. */
export function progressText(data) {
  if (!data || typeof data !== "object") return String(data ?? "");
  if (typeof data.message === "string") return data.message;
  if (Object.hasOwn(RUN_STEPS, data.status ?? "")) return RUN_STEPS[data.status](data);
  if (typeof data.text === "string") return data.text;
  const line = webLine(data) ?? deepLine(data);
  if (line) return line;
  return Object.entries(data)
    .filter(([, value]) => typeof value !== "object")
    .map(([name, value]) => `${name.replaceAll("_", " ")}: ${value}`)
    .join(" · ");
}
