// A command on memory files, opened up: which file, what was taken out and put in, or what it holds.
import { h } from "../core/dom.js";
import { section } from "./tool-parts.js";

const ROOT = "/memories";
const SYNONYMS = { read: "view", list: "view", write: "create", replace: "str_replace", edit: "str_replace", remove: "delete", move: "rename" };
const HEADING = /^Here're the files and directories.*\n?|^Here's the content of .*\n?/;

export function isFile(call) {
  return call.name === "memory";
}

/** The parts of the card's body, from what was given and, once it is there, from what came back. */
export function fileParts(call) {
  const { input } = call;
  const command = SYNONYMS[input.command] ?? input.command;
  const parts = [facts(command, input)];
  if (command === "str_replace") parts.push(diff(input.old_str ?? input.old_string, input.new_str ?? input.new_string));
  if (command === "create") parts.push(written(input.file_text ?? input.content ?? input.text));
  if (command === "insert") parts.push(written(input.insert_text ?? input.new_str ?? input.new_string));
  if (command === "view" && call.result && !call.isError) parts.push(section(isListing(call) ? "Files" : "Content", call.result.replace(HEADING, "")));
  if (command !== "view" && call.state === "done") parts.push(h("p", {}, h("a", { href: "/memory/files/" }, "Open memory files")));
  return parts.filter(Boolean);
}

function facts(command, input) {
  const path = String(input.path ?? input.old_path ?? ROOT);
  const rows = [["file", path]];
  if (input.new_path) rows.push(["new name", String(input.new_path)]);
  if (command === "insert" && input.insert_line !== undefined) rows.push(["after line", String(input.insert_line)]);
  if (Array.isArray(input.view_range)) rows.push(["lines", input.view_range.join(" to ").replace("-1", "the end")]);
  return h("dl", { class: "tool-input" }, rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

function isListing(call) {
  return call.result.startsWith("Here're the files");
}

/** The lines that were taken out and those that stand in their place. */
function diff(before, after) {
  const lines = [...linesOf(before).map((line) => h("del", {}, line || " ")), ...linesOf(after).map((line) => h("ins", {}, line || " "))];
  return h("pre", { class: "diff", tabindex: "0", "aria-label": "What was replaced" }, lines);
}

function written(text) {
  if (typeof text !== "string") return null;
  const count = linesOf(text).length;
  return section(`Written: ${count} ${count === 1 ? "line" : "lines"}, ${text.length.toLocaleString()} characters`, text);
}

function linesOf(text) {
  return typeof text === "string" && text ? text.replace(/\n$/, "").split("\n") : [];
}
