// What came from the web, on its card: the pages that a search found, and the page that was read.
import { h } from "../core/dom.js";
import { parsed } from "./format.js";
import { section } from "./tool-parts.js";

const SHOWN = 20;
const HEAD = /^<page url="([^"]*)"(?: title="([^"]*)")?>$/m;

/** A line for the progress of a search or of reading a page; null for any other progress. */
export function webLine(data) {
  if (data.status === "fetching") return `Fetching ${hostOf(String(data.url ?? "")) || "the page"}`;
  if (data.status === "reading") return `Read ${size(data.bytes)}`;
  if (data.status === "extracting") return data.of ? `Reading page ${data.pages} of ${data.of}` : "Looking for the text";
  if (data.status === "searching" && data.engine) return `Asking ${data.engine}`;
  if (data.status === "found" && !("memories" in data)) return data.count > 0 ? `Found ${data.count} ${data.count === 1 ? "page" : "pages"}` : "Found nothing";
  return null;
}

/** The parts of a card that show what was found or read, or null. */
export function webParts(call) {
  if (call.state !== "done" || call.isError) return null;
  const found = call.name === "web_search" ? pagesFound(call) : null;
  if (call.name !== "open_page") return found && [found];
  const page = pageRead(call);
  return page && [page, section("Text", pageText(call.result))];
}

function pagesFound(call) {
  const results = parsed(afterNotice(call.result))?.results;
  if (!Array.isArray(results)) return null;
  if (results.length === 0) return h("p", { class: "faint small" }, "No pages were found.");
  return h("ol", { class: "web-found" }, results.slice(0, SHOWN).map(hit));
}

function hit(result) {
  const url = String(result.url ?? "");
  const more = [hostOf(url), result.age].filter(Boolean).join(" · ");
  return h("li", {}, pageLink(url, result.title), h("span", { class: "web-place" }, more), result.text ? h("p", {}, String(result.text)) : null);
}

function pageRead(call) {
  const head = HEAD.exec(call.result);
  if (!head) return null;
  const url = plain(head[1]);
  return h("p", { class: "web-page" }, pageLink(url, plain(head[2] ?? "")), h("span", { class: "web-place" }, hostOf(url)));
}

/** What was read, without the marks that tell the model whose words they are. */
function pageText(result) {
  const [, body, notes] = /<page [^\n]*>\n([^]*)\n<\/page>\n?([^]*)$/.exec(result) ?? [];
  return body === undefined ? result : [body, notes].filter(Boolean).join("\n\n");
}

/** Only a web address becomes a link: the words and the address are a stranger's. */
function pageLink(url, title) {
  const words = String(title || url).trim() || url;
  if (!hostOf(url)) return h("span", { class: "web-title" }, words);
  return h("a", { class: "web-title", href: url, target: "_blank", rel: "noopener noreferrer nofollow" }, words);
}

/** The host of a web address, "" for anything else. */
export function hostOf(url) {
  try {
    const { protocol, hostname } = new URL(url);
    return protocol === "https:" || protocol === "http:" ? hostname.replace(/^www\./, "") : "";
  } catch {
    return "";
  }
}

/** The result without the first line, which tells the model whose words they are. */
function afterNotice(text) {
  return text.startsWith("[") && text.includes("\n") ? text.slice(text.indexOf("\n") + 1) : text;
}

function plain(attribute) {
  const names = { lt: "<", gt: ">", quot: '"', amp: "&", "#10": " " };
  return attribute.replace(/&(lt|gt|quot|amp|#10);/g, (_, name) => names[name]);
}

function size(bytes) {
  if (!(bytes >= 0)) return "";
  if (bytes < 1000) return `${bytes} bytes`;
  return bytes < 1e6 ? `${Math.round(bytes / 1000)} KB` : `${(bytes / 1e6).toFixed(1)} MB`;
}
