// Numbers, times and tool data in words a person reads.
import { h } from "../core/dom.js";

export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1000) return `${Math.max(1, Math.round(ms))} ms`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return ms < 9950 ? `${(ms / 1000).toFixed(1)} s` : `${seconds} s`;
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

const CLOCK = { hourCycle: "h23", weekday: "long", day: "numeric", month: "long", year: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" };
const timeZone = document.querySelector('meta[name="time-zone"]')?.content || "UTC";

/** The parts of a moment by the clock of the user's time zone, whatever the browser's is. */
function partsOf(date) {
  try {
    return partsIn(date, timeZone);
  } catch {
    return partsIn(date, "UTC"); // a zone that this browser does not know
  }
}

function partsIn(date, zone) {
  const parts = new Intl.DateTimeFormat("en-GB", { ...CLOCK, timeZone: zone }).formatToParts(date);
  return Object.fromEntries(parts.map(({ type, value }) => [type, value]));
}

/** "today, 14:05" as apps.core.templatetags.dates writes it, as a <time> that tells the whole date; null for no moment. */
export function moment(iso) {
  const date = new Date(iso ?? "");
  if (Number.isNaN(date.getTime())) return null;
  const at = partsOf(date);
  const time = `${at.hour}:${at.minute}`;
  const whole = `${at.weekday} ${at.day} ${at.month} ${at.year}, ${time}:${at.second}`;
  return h("time", { datetime: iso, title: whole }, `${dayOf(at)}, ${time}`);
}

/** Calendar days are compared, not hours: a day may have 23 or 25 of them. */
function dayOf(at) {
  const now = partsOf(new Date());
  const number = ({ day, month, year }) => Date.parse(`${day} ${month} ${year} 00:00:00 UTC`) / 86_400_000;
  const ago = number(now) - number(at);
  if (ago === 0) return "today";
  if (ago === 1) return "yesterday";
  return at.year === now.year ? `${at.day} ${at.month}` : `${at.day} ${at.month} ${at.year}`;
}

/** The line above words of others that tells the model what they are; people see it by where they stand. */
const FOR_THE_MODEL = /^\[What follows was written by others\.[^\]]*\]\n/;

const HIDDEN = /[\p{Default_Ignorable_Code_Point}\uFFF9-\uFFFB]+/gu;
const JOINS = /^(?:[\uFE0E\uFE0F]?\u200D?|\u200C)$/;
const JOINED = /[^\x00-\x7F]|[0-9#*]/;

/** As apps.core.text.revealed: the text for somebody who has to say yes to it, with a note where it has characters that do not show. */
export function revealed(text) {
  return text.replace(HIDDEN, (found, at) => {
    if (JOINS.test(found) && JOINED.test(text[at - 1] ?? "")) return found;
    const count = [...found].length;
    return `⟨${count.toLocaleString("en")} hidden character${count > 1 ? "s" : ""}⟩`;
  });
}

/** JSON text is indented; any other text stays as it is. */
export function pretty(value) {
  if (typeof value !== "string") return JSON.stringify(value, null, 2);
  const text = value.replace(FOR_THE_MODEL, "");
  const trimmed = text.trim();
  if (!trimmed.startsWith("{") && !trimmed.startsWith("[")) return text;
  try {
    return JSON.stringify(JSON.parse(trimmed), null, 2);
  } catch {
    return text;
  }
}

/** The value of a result in JSON, null for any other text. A line in brackets above it is for the model. */
export function parsed(value) {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value.replace(FOR_THE_MODEL, ""));
  } catch {
    return null;
  }
}

/** "memory_search" → "Memory search" */
export function humanName(name) {
  const words = name.replaceAll("_", " ").trim();
  return words.charAt(0).toUpperCase() + words.slice(1);
}

export function shorten(text, limit = 80) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= limit ? line : `${line.slice(0, limit - 1)}…`;
}

/** What stands beside what the server does not have yet. */
export function sendingText(isConnected) {
  return isConnected ? "Sending…" : "Waiting for the connection";
}

export function usageText(usage) {
  if (!usage || !(usage.input_tokens || usage.output_tokens)) return "";
  const read = usage.input_tokens + (usage.cache_read_tokens ?? 0) + (usage.cache_write_tokens ?? 0);
  const parts = [`${read.toLocaleString()} tokens read`, `${usage.output_tokens.toLocaleString()} written`];
  if (Number(usage.cost_usd) > 0) parts.push(`$${Number(usage.cost_usd).toFixed(4)}`);
  return parts.join(" · ");
}
