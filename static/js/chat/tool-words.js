// What a tool call is called on its card: a sentence about this call rather than the function's name.
import { addressed } from "../core/addressing.js";
import { deepLine } from "./deep-memory.js";
import { notRun } from "./not-run.js";
import { hostOf, webLine } from "./web.js";
import { humanName, parsed, shorten } from "./format.js";

const NOTE_TOOLS = new Set(["memory_save", "memory_update", "memory_delete", "store_memory"]);

const SEARCHES = new Set(["memory_search", "recall_memory", "deep_memory"]);

/** What came of a note tool that did not do what its name says, by the status of its result. */
const STATUS_WORDS = { pending: "Waits for your review", known: "Known already" };

const WORDS = {
  memory_search: (call) => [ing(call, "Searching memories", "Searched memories"), call.input.query],
  recall_memory: (call) => [ing(call, "Recalling", "Recalled"), call.input.keywords],
  memory_save: (call) => [ing(call, "Saving a memory", statusWords(call) ?? "Saved a memory"), call.input.content],
  store_memory: (call) => [ing(call, "Saving a memory", statusWords(call) ?? "Saved a memory"), call.input.content],
  memory_update: (call) => [ing(call, "Correcting a memory", statusWords(call) ?? "Corrected a memory"), call.input.content],
  memory_delete: (call) => [ing(call, "Forgetting a memory", "Forgot a memory"), ""],
  deep_memory: (call) => [ing(call, "Searching deep memory", "Searched deep memory"), call.input.query],
  link_memories: (call) => [ing(call, "Linking memories", "Linked memories"), call.input.relation],
  related_memories: (call) => [ing(call, "Following links", "Followed links"), ""],
  conversation_search: (call) => [ing(call, "Searching conversations", "Searched conversations"), call.input.query],
  conversation_list: (call) => [ing(call, "Listing conversations", "Listed conversations"), ""],
  conversation_read: (call) => [ing(call, "Reading a conversation", "Read a conversation"), ""],
  conversation_delete: (call) => [ing(call, "Deleting a conversation", "Deleted a conversation"), ""],
  memory: (call) => [fileWords(call), call.input.path ?? call.input.old_path],
  web_search: (call) => [ing(call, "Searching the web", "Searched the web"), call.input.query],
  open_page: (call) => [ing(call, "Reading a page", "Read a page"), pageWords(call.input.url)],
  lookup_capability: (call) => [ing(call, "Looking for a capability", "Looked for a capability"), call.input.query ?? call.input.name],
  list_capabilities: (call) => [ing(call, "Listing capabilities", "Listed capabilities"), ""],
  read_capability_docs: (call) => [ing(call, "Reading instructions", "Read instructions"), call.input.name],
  execute_capability: (call) => [ing(call, `Running ${plainName(call.input.name)}`, `Ran ${plainName(call.input.name)}`), firstText(call.input.input)],
  think: (call) => [ing(call, "Thinking", "Thought"), call.input.thought ?? call.input.text],
  request_capability: (call) => [ing(call, "Asking for a capability", "Asked for a capability"), call.input.name],
  ask_user: (call) => ["Asked you", call.question || call.input.question],
};

const FILE_WORDS = {
  view: ["Reading memory files", "Read memory files"],
  create: ["Writing a memory file", "Wrote a memory file"],
  delete: ["Deleting a memory file", "Deleted a memory file"],
  rename: ["Renaming a memory file", "Renamed a memory file"],
};

const WISHES = {
  memory: "read or change your memory files",
  conversation_delete: "delete a conversation",
  memory_save: "save a memory",
  memory_update: "change a memory",
  memory_delete: "delete a memory",
  memory_search: "search your memories",
  store_memory: "save a memory",
  recall_memory: "search your memories",
  deep_memory: "search your memories",
  link_memories: "link two memories",
  related_memories: "look at linked memories",
  conversation_search: "search your conversations",
  conversation_read: "read a conversation",
  conversation_list: "list your conversations",
  execute_capability: "run one of your capabilities",
  request_capability: "have a capability built",
  web_search: "search the web",
  open_page: "read a web page",
};

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
export function wishOf(name) {
  if (name.startsWith("cap_")) return `run “${humanName(plainName(name))}”`;
  return own(WISHES, name) ?? `use “${humanName(name)}”`;
}

/** Of a table by names that a model chose: `constructor` is none of its rows. */
function own(table, name) {
  return Object.hasOwn(table, String(name)) ? table[name] : undefined;
}

/** The address without what nobody reads: its scheme, and the slash at its end. */
function pageWords(url) {
  return hostOf(String(url ?? "")) ? String(url).replace(/^https?:\/\/(www\.)?/, "").replace(/\/$/, "") : url;
}

function fileWords(call) {
  const [running, done] = own(FILE_WORDS, call.input.command) ?? ["Changing a memory file", "Changed a memory file"];
  return ing(call, running, done);
}

function ing(call, running, done) {
  if (call.state === "error") return `${running}: ${notRun(call) ? "not done" : "failed"}`;
  return call.state === "done" ? done : running;
}

function capabilityWords(call) {
  const name = plainName(call.name);
  return [ing(call, `Running ${name}`, `Ran ${name}`), firstText(call.input)];
}

/** → {title, detail, icon, isMemory} */
export function describeCall(call) {
  const words = own(WORDS, call.name) ?? (call.name.startsWith("cap_") ? capabilityWords : null);
  const [title, detail] = words ? words(call) : [humanName(call.name), firstText(call.input)];
  const shown = NOTE_TOOLS.has(call.name) || SEARCHES.has(call.name) ? addressed(asText(detail)) : asText(detail);
  return { title, detail: shorten(shown), icon: iconOf(call), isMemory: NOTE_TOOLS.has(call.name) };
}

/** Whether what a call wanted to remember has to be reviewed first. */
export function waits(call) {
  return NOTE_TOOLS.has(call.name) && call.state === "done" && parsed(call.result)?.status === "pending";
}

function statusWords(call) {
  return own(STATUS_WORDS, parsed(call.result)?.status);
}

/** The note a call has written or deleted, so that the reader can correct it or bring it back: {item, gone}. */
export function noteOf(call) {
  if (!NOTE_TOOLS.has(call.name) || call.state !== "done" || waits(call)) return null;
  const result = parsed(call.result);
  const id = result?.note_id ?? call.input.note_id;
  if (!id) return null;
  const gone = call.name === "memory_delete";
  return { item: { id, text: result?.text ?? call.input.content ?? "" }, gone };
}

function iconOf(call) {
  if (call.name === "ask_user") return "question";
  if (NOTE_TOOLS.has(call.name) || call.name === "memory") return "memory";
  if (call.name === "deep_memory" || call.name.endsWith("_memories")) return "memory";
  if (call.name === "web_search" || call.name === "open_page") return "globe";
  if (call.name.includes("search") || call.name.startsWith("recall")) return "search";
  if (call.name.startsWith("conversation")) return "chat";
  return call.name === "think" ? "info" : "tool";
}

function firstText(input) {
  const isPlain = (value) => ["string", "number"].includes(typeof value);
  const found = Object.values(input ?? {}).find((value) => typeof value === "string" || (Array.isArray(value) && value.length > 0 && value.every(isPlain)));
  return found ?? "";
}

function asText(value) {
  if (Array.isArray(value)) return value.join(", ");
  return typeof value === "string" ? value : "";
}

/** What a note said, as far as this conversation has shown it; "" where it has not. */
export function noteText(turns, id) {
  const same = (other) => Boolean(other) && String(other).replace(/^note-/, "") === String(id).replace(/^note-/, "");
  for (const turn of turns.toReversed()) {
    for (const call of turn.segments.toReversed()) {
      if (call.type !== "tool") continue;
      const result = parsed(call.result);
      if (Array.isArray(result)) {
        const hit = result.find((item) => same(item?.note_id));
        if (hit) return hit.text ?? "";
      } else if (call.input.content && same(result?.note_id)) {
        return call.input.content;
      }
    }
    const surfaced = turn.memories.find((item) => same(item.id));
    if (surfaced) return surfaced.text;
  }
  return "";
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
