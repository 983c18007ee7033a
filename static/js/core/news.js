// What every page keeps an eye on: the sidebar's list, which another tab or Izzy may have changed, how much waits for review, and the
// questions of builds, which wait a minute only: in the title, at the top of the page and in the sidebar, with the seconds left.
import { notify, wantsNotices } from "./app-like.js";
import { h, icon } from "./dom.js";

const EVERY = 5000;
const HIDDEN_EVERY = 15000;
const ROWS_PER_PAGE = 40;
const UNDO_FOR = 120000; // as long as what was deleted can be brought back

let asks = []; // each with `until`, by this page's clock
let waiting = 0; // calls of programs that wait for a yes
let baseTitle = document.title;
let stamp = null; // of the list as it is drawn
let heard = null; // of the list as it was told of
let timer = null;
let late = false; // the list came anew while something of it was open, and was not drawn

/** The page's title; what is asked stands before it. */
export function setTitle(title) {
  baseTitle = title;
  showTitle();
}

export function startNews() {
  if (!document.getElementById("asks")) return;
  document.addEventListener("visibilitychange", () => document.hidden || look());
  document.addEventListener("izzy:answered", look);
  // Deleted here, or brought back: the rest of the page hears of it as it does of what happens elsewhere.
  document.addEventListener("htmx:after:swap", ({ detail }) => detail.ctx?.target?.matches?.("[data-conversation-row]") && look());
  document.addEventListener("htmx:before:swap", (event) => {
    if (event.detail.ctx.target?.id !== "conversations" || !hasOpen()) return;
    event.preventDefault(); // a menu or a title would be gone under the reader's hand
    late = true;
  });
  setInterval(tick, 1000);
  look();
}

async function look() {
  clearTimeout(timer);
  const url = document.getElementById("asks").dataset.url + (wantsNotices() ? "?done" : "");
  const response = await fetch(url, { credentials: "same-origin" }).catch(() => null);
  if (response?.redirected) return; // signed out
  const news = response?.ok ? await response.json().catch(() => null) : null; // broken off, or not Izzy's answer
  if (news) await show(news);
  timer = setTimeout(look, document.hidden ? HIDDEN_EVERY : EVERY);
}

async function show(news) {
  asks = news.asks.map((ask) => ({ ...ask, until: performance.now() + ask.seconds * 1000 }));
  waiting = news.waiting;
  if (news.done) notify(news.done);
  draw();
  for (const count of document.querySelectorAll("[id^='review-count-']")) drawReview(count, news.review);
  if (heard !== null && heard !== news.stamp) document.dispatchEvent(new CustomEvent("izzy:conversations"));
  heard = news.stamp;
  const changed = stamp !== null && stamp !== news.stamp;
  if (!changed || (await reloadSidebar())) stamp = news.stamp;
}

/** As `memory/review/_counts.html` draws it. */
function drawReview(count, number) {
  if ((count.firstElementChild?.textContent ?? "0") === String(number)) return;
  count.replaceChildren(...(number ? [h("span", { "aria-hidden": "true" }, number), h("span", { class: "visually-hidden" }, `, ${number} waiting for you`)] : []));
}

/** What shows conversations, as the server has them now: the sidebar's list, and the page of all of them. */
export async function relist() {
  await reloadSidebar();
  const page = document.getElementById("conversation-page");
  if (!page) return;
  const asked = new URLSearchParams(location.search);
  if (!asked.has("show")) asked.set("show", "");
  await window.htmx?.ajax("GET", `${location.pathname}?${asked}`, { target: "#conversation-page", swap: "innerMorph" });
}

/** Whether the reader has opened a menu in the list, or is renaming something. */
function hasOpen() {
  return document.querySelector("#conversations :is(form, :popover-open)") !== null;
}

/** The list as the server has it now, as far as it was open. False where the reader is in the middle of something in it. */
async function reloadSidebar() {
  const list = document.getElementById("conversations");
  if (hasOpen() || list.querySelector(".conversation-deleted") || document.querySelector("dialog[open]")) return false;
  const query = document.getElementById("conversation-search").value;
  const pages = Math.max(1, Math.ceil(list.querySelectorAll("[data-conversation-row]").length / ROWS_PER_PAGE));
  const asked = new URLSearchParams(query ? { q: query } : { page: pages, whole: "" });
  late = false;
  await window.htmx?.ajax("GET", `${list.dataset.url}?${asked}`, { target: "#conversations", swap: "innerMorph" });
  return !late;
}

function draw() {
  const box = document.getElementById("asks");
  const shown = asks.filter(({ build }) => !document.querySelector(`.build[data-build="${CSS.escape(build)}"]`));
  const known = new Map([...box.children].map((element) => [element.dataset.ask, element]));
  box.replaceChildren(...shown.map((ask) => known.get(ask.id) ?? banner(ask)));
  const count = document.getElementById("asks-count");
  count.textContent = asks.length + waiting || "";
  count.title = asks.length ? "A build waits for your answer" : waiting ? "A call of a program waits for your yes" : "";
  showTitle();
  tick();
}

function banner({ id, build, name, text }) {
  const words = h("span", { class: "grow break", role: "status" }, h("strong", {}, name), ` asks: ${text}`);
  return h("div", { class: "banner banner-warn", dataset: { ask: id } }, icon("question"), words, h("span", { class: "ask-left", dataset: { askLeft: id }, "aria-hidden": "true" }), h("a", { class: "btn btn-small", href: `/builds/${build}/` }, "Answer"));
}

function showTitle() {
  document.title = asks.length ? `${asks[0].name} asks · ${baseTitle}` : baseTitle;
}

const deletedAt = new WeakMap();

/** A row that offers to bring its conversation back keeps the list as it is, for no longer than it can. */
function forgetDeleted() {
  for (const row of document.querySelectorAll("#conversations .conversation-deleted")) {
    if (!deletedAt.has(row)) deletedAt.set(row, performance.now());
    if (performance.now() - deletedAt.get(row) < UNDO_FOR) continue;
    if (row.contains(document.activeElement)) document.getElementById("new-chat")?.focus();
    row.remove();
  }
}

/** A second has passed: nobody is asked any more when the build goes on, and what was open in the list may be closed. */
function tick() {
  forgetDeleted();
  if (late) reloadSidebar();
  const left = asks.filter(({ until }) => until > performance.now());
  if (left.length < asks.length) {
    asks = left;
    draw();
    return;
  }
  for (const { id, until } of asks) {
    const seconds = Math.ceil((until - performance.now()) / 1000);
    for (const element of document.querySelectorAll(`[data-ask-left="${CSS.escape(id)}"]`)) element.textContent = leftText(seconds);
  }
}

function leftText(seconds) {
  return seconds < 120 ? `${seconds} s left` : `${Math.round(seconds / 60)} min left`;
}
