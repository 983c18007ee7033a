// What stands around the log: titles, banners, the memory switch, the button for earlier messages.
import { setTitle } from "../core/news.js";

const byId = (id) => document.getElementById(id);

export class Surroundings {
  get wantsMemory() {
    return byId("use-memory")?.checked !== false;
  }

  showTitle({ title, conversation }) {
    const shown = title || (conversation ? "Conversation" : "New conversation");
    byId("chat-title").textContent = shown;
    byId("chat-title").title = shown;
    const log = byId("chat-log");
    if (log) {
      log.hidden = !conversation;
      if (conversation) log.href = `/c/${conversation}/log/`;
    }
    const about = byId("chat-about");
    about.hidden = !conversation;
    if (conversation) about.href = byId("chat-own").href = `/c/${conversation}/about/`;
    setTitle(`${shown} · Izzy`);
  }

  /** What holds in this conversation alone: its model, its instructions. */
  showOwn({ conversation, model, instructions }) {
    const own = byId("chat-own");
    own.hidden = !conversation || !(model || instructions);
    own.textContent = [model, instructions ? "own instructions" : ""].filter(Boolean).join(" · ");
  }

  showConnection(status) {
    byId("banner-lost").hidden = status !== "lost";
    byId("banner-refused").hidden = status !== "refused";
  }

  /** The conversation that was shown here was deleted elsewhere. */
  showGone(gone) {
    byId("banner-gone").hidden = !gone;
  }

  showArchived({ archived }) {
    byId("banner-archived").hidden = !archived;
  }

  /** The switch belongs to a conversation that has not begun; later it only says that it is off. */
  showMemory({ conversation, turns, useMemory }) {
    const isNew = conversation === null;
    byId("memory-switch").hidden = !isNew || turns.length > 0;
    byId("memory-off").hidden = isNew || useMemory;
  }

  /** What the reader has allowed here for more than one call, each with a way to take it back. */
  showGrants(conversation) {
    if (byId("grants")) byId("grants").replaceChildren();
    if (conversation) window.htmx?.ajax("GET", `/grants/?conversation=${conversation}`, { target: "#grants", swap: "outerHTML" });
  }

  /** What an empty chat offers, as things are now: what it named may have been deleted since. */
  renewSuggestions() {
    if (!byId("chat-empty").hidden) window.htmx?.ajax("GET", "/suggestions/", { target: "#suggestions", swap: "outerHTML" });
  }

  get hasEarlier() {
    return !byId("earlier").hidden;
  }

  showEarlier(more) {
    byId("earlier").hidden = !more;
  }
}
