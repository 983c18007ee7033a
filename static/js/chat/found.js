// What a search through Izzy's own things found, on its card: memories to be corrected, conversations and capabilities to be opened.
import { addressed } from "../core/addressing.js";
import { h, isolated } from "../core/dom.js";
import { moment, parsed } from "./format.js";
import { MemoryCard } from "./memory-card.js";

const SHOWN = 20;

const LISTS = {
  memory_search: (result) => [result, memory],
  recall_memory: (result) => [result?.memories, memory],
  related_memories: (result) => [result?.memories, memory],
  conversation_search: (result) => [result?.results, said],
  conversation_list: (result) => [result?.conversations, conversation],
  conversation_read: (result) => [result?.messages, message],
  list_capabilities: (result) => [result?.capabilities, capability],
  lookup_capability: (result) => [result && [...(result.found ? [result] : []), ...asList(result.others)], capability],
};

/** The parts of the card, or null for a call that found nothing of this kind. */
export function foundParts(call) {
  if (call.state !== "done" || call.isError || !Object.hasOwn(LISTS, call.name)) return null;
  const [entries, draw] = LISTS[call.name](parsed(call.result));
  if (!Array.isArray(entries) || entries.some((entry) => entry === null || typeof entry !== "object")) return null;
  if (entries.length === 0) return [...asked(call), h("p", { class: "faint" }, "Nothing was found.")];
  const more = entries.length > SHOWN ? h("p", { class: "faint small" }, `And ${entries.length - SHOWN} more.`) : null;
  return [...asked(call), h("ul", { class: "found" }, entries.slice(0, SHOWN).map(draw)), more].filter(Boolean);
}

/** What was looked for, where the head of the card may have cut it off. */
function asked(call) {
  const query = call.input.query ?? call.input.keywords;
  const text = Array.isArray(query) ? query.join(", ") : query;
  return typeof text === "string" && text ? [h("p", { class: "faint" }, isolated(`Looked for “${text}”`))] : [];
}

function memory(entry) {
  const text = String(entry.text ?? "");
  if (entry.note_id) return new MemoryCard({ ...entry, text }).element;
  return h("li", {}, h("p", {}, addressed(text)), entry.source === "conversation" ? h("p", { class: "faint small" }, "said in this conversation") : null);
}

function whoAndWhen(entry) {
  const who = entry.role === "user" ? "You" : entry.role === "assistant" ? "Izzy" : String(entry.role ?? "");
  const at = moment(entry.created_at);
  return [who, who && at && ", ", at].filter(Boolean);
}

function said(entry) {
  return h("li", {}, h("p", {}, String(entry.text ?? "")), h("p", { class: "faint small" }, whoAndWhen(entry), ", in ", conversationLink(entry.conversation_id, entry.title)));
}

function conversation(entry) {
  return h("li", {}, h("p", {}, conversationLink(entry.id, entry.title)), h("p", { class: "faint small" }, moment(entry.updated_at)));
}

function message(entry) {
  return h("li", {}, h("p", { class: "faint small" }, whoAndWhen(entry)), h("p", { class: "found-words" }, String(entry.text ?? "")));
}

function capability(entry) {
  const name = String(entry.name ?? "");
  return h("li", {}, h("p", {}, h("a", { href: `/capabilities/${encodeURIComponent(name)}/` }, name)), h("p", { class: "muted" }, String(entry.description ?? "")));
}

function conversationLink(id, title) {
  const words = String(title ?? "") || "a conversation";
  return id ? h("a", { href: `/c/${encodeURIComponent(id)}/` }, words) : words;
}

function asList(value) {
  return Array.isArray(value) ? value : [];
}
