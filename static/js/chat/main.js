// The chat page: puts socket, state, log, composer and sidebar together.
import { toast, toastError } from "../core/toasts.js";
import { uuid } from "../core/ids.js";
import { Announcer } from "./announcer.js";
import { messageOf, point, takeMessageFromUrl, turnWith } from "./at-message.js";
import { Composer } from "./composer.js";
import { Outbox } from "./drafts.js";
import { conversationInUrl, setUrl, SidebarLinks } from "./history.js";
import { LogView } from "./log-view.js";
import { ScrollKeeper } from "./scroll.js";
import { api } from "../core/api.js";
import { fromSnapshot, prependEarlier } from "./snapshot.js";
import { ChatSocket, socketUrl } from "./socket.js";
import { focusVersions } from "./versions.js";
import { conversationTitle, noteText } from "./tool-words.js";
import { Surroundings } from "./surroundings.js";
import { addOptimistic, answeredWith, apply, busyTurn, dropOptimistic, emptyState, ENDED, findCall, giveAnswer, lastTurn, openQuestion, wentOn } from "./state.js";

const byId = (id) => document.getElementById(id);
const SNAPSHOT_MESSAGES = 30;
const MOST_TURNS = 80; // on the page while the reader is at its end
const KEPT_TURNS = 50;
const KEEPS_BUSY = new Set(["text_delta", "html", "model_retry", "summing_up", "tool_progress", "memory_context", "tool_start", "tool_result", "build"]);

export class ChatPage {
  constructor({ socket, snapshot = null }) {
    this.state = emptyState();
    this.outbox = new Outbox();
    this.socket = socket;
    this.around = new Surroundings();
    this.links = new SidebarLinks(byId("conversations"));
    this.announcer = new Announcer(byId("announcer"), byId("announcer-urgent"));
    this.log = new LogView(byId("log"), byId("chat-empty"), this.#logActions());
    this.composer = new Composer(byId("composer"), {
      send: (text, replaces, files, spoken) => this.send(text, replaces, files, spoken),
      answer: (id, text, spoken) => this.answer(id, text, spoken),
      stop: () => this.stop(),
      editLast: () => this.#editLast(),
      announce: (text, isUrgent) => (isUrgent ? this.announcer.interrupt(text) : this.announcer.say(text)),
    });
    this.scroll = new ScrollKeeper(byId("chat-scroll"), byId("chat-column"), byId("jump"));
    socket.addEventListener("frame", ({ detail }) => this.#onFrame(detail));
    socket.addEventListener("status", ({ detail }) => this.#onStatus(detail));
    this.#listen();
    if (snapshot) this.#showSnapshot(snapshot);
    else this.show(emptyState(conversationInUrl()));
  }

  /** Makes the page show this state. */
  show(state) {
    if (state.conversation !== this.state.conversation) this.composer.voice.leave();
    this.state = state;
    this.around.showEarlier(false);
    this.around.showGone(false);
    this.composer.open(state.conversation);
    this.#addPending();
    this.log.reset(state);
    this.#afterChange();
    this.links.mark(state.conversation);
    this.around.showTitle(this.state);
    this.around.showArchived(state);
    this.around.showOwn(state);
    this.around.showGrants(state.conversation);
    if (state.turns.length > 0) this.scroll.toEnd();
    else this.scroll.toStart();
  }

  /** Opens another conversation (null: a new one) without loading the page again. */
  open(conversation, { push = true, message = null } = {}) {
    this.wantedMessage = message;
    if (this.state.conversation && this.state.conversation !== conversation) this.socket.send({ type: "close", conversation: this.state.conversation });
    if (push) setUrl(conversation);
    this.wanted = conversation;
    if (conversation === null) {
      this.show(emptyState());
      this.around.renewSuggestions();
      this.composer.focus();
      return;
    }
    this.links.mark(conversation);
    if (!this.socket.send({ type: "open", conversation })) this.show(emptyState(conversation));
  }

  send(text, replaces = null, files = [], spoken = false) {
    const frame = { type: "message", text, client_id: uuid() };
    // An edit says which files stay; `files` is what the page shows until the server has it.
    if (files.length > 0 || replaces) Object.assign(frame, { attachments: files.map((file) => file.id), files });
    if (this.state.conversation) frame.conversation = this.state.conversation;
    else if (!this.around.wantsMemory) frame.use_memory = false;
    if (replaces) frame.replaces = replaces;
    if (spoken) frame.spoken = true;
    this.#sendFrame(frame, text, replaces, files);
  }

  /** The answer to a question; it shows at once, and is kept until the turn goes on. */
  answer(id, text, spoken = false) {
    const frame = { type: "answer", id, text, client_id: uuid(), conversation: this.state.conversation };
    giveAnswer(this.state, id, text);
    this.outbox.add(frame);
    this.socket.send(frame);
    const turn = this.state.turns.find(({ segments }) => segments.some((segment) => segment.id === id));
    this.composer.voice.sent(spoken, { id: turn?.id ?? null, said: this.log.viewOf(turn)?.sentences().length ?? 0 });
    this.log.drawAll(this.state);
    this.#afterChange();
  }

  /** The newest message once more; its old answer goes. */
  retry(turn) {
    const frame = { type: "retry", conversation: this.state.conversation, client_id: uuid() };
    if (turn.user.id) frame.replaces = turn.user.id;
    this.#sendFrame(frame, turn.user.text, turn.user.id, turn.user.attachments);
  }

  /** Shows the message at once, and keeps it until the server has confirmed it. */
  #sendFrame(frame, text, replaces, files = []) {
    addOptimistic(this.state, { clientId: frame.client_id, text, at: new Date().toISOString(), replaces, files });
    this.outbox.add(frame);
    this.socket.send(frame);
    this.composer.voice.sent(frame.spoken === true, { clientId: frame.client_id });
    this.log.drawAll(this.state);
    this.#afterChange();
    this.scroll.toEnd();
  }

  stop() {
    if (busyTurn(this.state) && !this.socket.send({ type: "stop", conversation: this.state.conversation })) this.#notConnected();
  }

  #logActions() {
    const ask = (frame) => this.socket.send(frame) || this.#notConnected();
    return {
      decide: (id, decision) => ask({ type: "approve", id, decision }),
      say: (text) => this.send(text),
      drawn: (turn, view) => this.composer?.voice.drawn(turn, () => view.sentences()),
      wentOn: (turn, since) => wentOn(this.state, turn, since),
      isConnected: () => this.socket.status === "open",
      retry: (turn) => this.retry(turn),
      noteText: (id) => noteText(this.state.turns, id),
      conversationTitle: (id) => conversationTitle(this.state.turns, id),
      choose: (turn, by) => this.#choose(turn, by),
      edit: (turn) => this.composer.startEdit(turn.user.id, turn.user.text, turn.user.attachments),
    };
  }

  /** Asks for another version of a message; the `branch` event has the page read anew. */
  async #choose(turn, by) {
    this.chosen = { turn, by };
    try {
      await api("POST", `/api/v1/conversations/${this.state.conversation}/branch/`, { turn });
    } catch (error) {
      this.chosen = null;
      toastError(error);
    }
  }

  #onBranch(frame) {
    if (frame.conversation !== this.state.conversation || frame.seq <= this.state.seq) return;
    this.wanted = frame.conversation;
    this.socket.send({ type: "open", conversation: frame.conversation });
  }

  #notConnected() {
    toast("No connection right now. Try again in a moment.", { kind: "danger" });
    return false;
  }

  #onStatus(status) {
    this.around.showConnection(status);
    if (status === "open") {
      const { conversation, seq } = this.state;
      const target = this.wanted ?? conversation;
      if (target) this.socket.send(target === conversation && seq > 0 ? { type: "open", conversation, seq } : { type: "open", conversation: target });
      for (const frame of this.outbox.frames) this.socket.send(frame);
      this.log.resetAsks(); // a decision may have gone with the connection: what still waits can be decided again
    }
    this.log.drawAll(this.state);
    this.#afterChange();
  }

  #onFrame(frame) {
    if (frame.type === "snapshot") this.#onSnapshot(frame);
    else if (frame.type === "branch") this.#onBranch(frame);
    else if (frame.type === "error" && frame.turn === undefined) this.#onRefusal(frame);
    else this.#onEvent(frame);
  }

  #onSnapshot(frame) {
    if (frame.conversation !== (this.wanted ?? this.state.conversation)) return;
    if (!this.wanted && isShown(this.state, frame)) return; // the reader stays where they are
    this.wanted = null;
    this.#showSnapshot(frame);
  }

  #showSnapshot(frame) {
    this.show(fromSnapshot(frame));
    // Where the conversation was left meanwhile, what confirmed these went to nobody: the server says it again.
    for (const sent of this.outbox.frames) if (sent.conversation === frame.conversation) this.socket.send(sent);
    this.around.showEarlier(frame.messages.length >= SNAPSHOT_MESSAGES);
    const wanted = takeMessageFromUrl() ?? this.wantedMessage;
    this.wantedMessage = null;
    this.#showChosen();
    if (wanted) this.#goTo(wanted);
  }

  /** The version that the reader asked for is there: it stays in sight, and so does the focus. */
  #showChosen() {
    const { chosen } = this;
    const element = chosen && this.log.viewOf(this.state.turns.find((turn) => turn.id === chosen.turn))?.element;
    this.chosen = null;
    if (!element) return;
    this.scroll.toElement(element);
    focusVersions(element, chosen.by);
    this.announcer.say(element.querySelector(".versions")?.getAttribute("aria-label") ?? "");
  }

  /** Scrolls to a message, however far back it is. */
  async #goTo(id) {
    const { state } = this;
    let turn = turnWith(state, id);
    while (!turn && this.around.hasEarlier && (await this.#loadEarlier(200))) turn = turnWith(state, id);
    if (state !== this.state) return;
    const element = turn && this.log.viewOf(turn)?.element;
    if (!element) {
      toast("That message is no longer there.");
      return;
    }
    this.scroll.toElement(element);
    point(element);
  }

  /** False where nothing came. */
  async #loadEarlier(size = 50) {
    const { state } = this;
    if (this.loading === state) return false;
    this.loading = state;
    try {
      return await this.#fetchEarlier(state, size);
    } finally {
      this.loading = null;
    }
  }

  async #fetchEarlier(state, size) {
    const first = state.turns.map((turn) => turn.user?.id ?? turn.messages[0]).find(Boolean);
    try {
      const page = await api("GET", `/api/v1/conversations/${state.conversation}/messages/?before=${first}&page_size=${size}`);
      if (state !== this.state) return false;
      prependEarlier(state, page.results);
      this.around.showEarlier(page.next !== null);
      this.scroll.holding(() => this.log.drawAll(state));
      return page.results.length > 0;
    } catch (error) {
      toastError(error);
      return false;
    }
  }

  #onRefusal(frame) {
    if (frame.code === "not_waiting" && this.#waitsForResult(frame.client_id)) return;
    const sent = frame.client_id ? this.outbox.remove(frame.client_id) : null;
    if (frame.client_id && !sent) return; // it was sent again after a reconnect, and the first had been taken
    if (sent) {
      this.composer.voice.leave();
      if (sent.type === "answer") giveAnswer(this.state, sent.id, null);
      dropOptimistic(this.state, sent.client_id);
      if (frame.code === "not_found" && sent.replaces && !turnWith(this.state, sent.replaces)) {
        sent.replaces = null; // edited or left behind in another window: as an edit it would be refused again and again
        frame.message = "The message that you edited is no longer there. What you wrote is in the field, as a new message.";
      }
      if (sent.text || sent.files?.length) this.composer.giveBack(sent.text, sent);
      this.log.drawAll(this.state);
    }
    // The conversation is gone, here or by another tab's doing: what was being written stays.
    if (frame.code === "not_found" && (this.wanted || frame.conversation === this.state.conversation)) {
      const { text } = this.composer;
      this.wanted = null;
      this.open(null);
      if (text) this.composer.giveBack(text);
      this.around.showGone(true);
    } else toast(frame.message, { kind: "danger" });
    this.log.resetAsks();
    this.#afterChange();
  }

  /** An answer that was refused because there is one already: this one, when it was sent first, or another tab's. The result says. */
  #waitsForResult(clientId) {
    const sent = this.outbox.frames.find((frame) => frame.client_id === clientId);
    return sent?.type === "answer" && (sent.conversation !== this.state.conversation || findCall(this.state, sent.id) !== null);
  }

  /** The question has ended; an answer of this page's that did not count is not lost. */
  #onAnswered(id, call) {
    const sent = this.outbox.answered(id);
    if (!sent || answeredWith(call, sent.text)) return;
    giveAnswer(this.state, id, null);
    this.composer.giveBack(sent.text, sent);
    toast(`${call.isError ? "That question was no longer waiting." : "That question was answered elsewhere first."} What you wrote is back in the field.`, { kind: "danger" });
  }

  #onEvent(frame) {
    if (frame.type === "tool_result") this.#onAnswered(frame.id, { result: frame.result, isError: frame.is_error });
    const mine = frame.type === "turn_queued" && frame.client_id ? this.outbox.remove(frame.client_id) : null;
    if (mine && !this.state.conversation && this.state.turns.some((turn) => turn.clientId === frame.client_id)) this.#adopt(frame);
    if (frame.type === "title") this.#onTitle(frame);
    if (frame.conversation !== this.state.conversation) return;
    const turn = apply(this.state, frame);
    if (!turn) return;
    if (frame.type === "turn_queued" && frame.title) this.#onTitle(frame); // other first words are another title
    if (frame.type === "turn_queued" && this.state.archived && frame.message) this.#marked("archived", false);
    // A decision may hold for more calls, and a new version ends what the one before was allowed.
    if (frame.type === "turn_resumed" || (frame.type === "build" && frame.message.type === "complete")) this.around.showGrants(frame.conversation);
    if (KEEPS_BUSY.has(frame.type)) this.log.draw(this.state, turn);
    else this.log.drawAll(this.state);
    this.composer.voice.onFrame(frame);
    this.announcer.onFrame(frame, this.log.viewOf(turn), this.composer.voice.reads(turn));
    if (!KEEPS_BUSY.has(frame.type)) this.#afterChange();
  }

  /** The first message made a conversation: the page is now that conversation's, unless another is on its way. */
  #adopt(frame) {
    this.state.conversation = frame.conversation;
    if (!this.wanted) setUrl(frame.conversation);
    this.composer.moved(frame.conversation);
    this.around.showGone(false);
    this.links.active = this.wanted ?? frame.conversation;
    this.links.reload();
    if (frame.title) this.state.title = frame.title;
    this.around.showTitle(this.state);
  }

  /** It was archived or brought back, by this page or by being written in. */
  #marked(field, value) {
    if (field !== "archived" || this.state.archived === value) return;
    this.state.archived = value;
    this.around.showArchived(this.state);
    this.links.reload();
  }

  async #unarchive() {
    const { state } = this;
    try {
      await api("PATCH", `/api/v1/conversations/${state.conversation}/`, { archived: false });
      if (state === this.state) this.#marked("archived", false);
      this.composer.focus();
    } catch (error) {
      toastError(error);
    }
  }

  #onTitle(frame) {
    this.links.setTitle(frame.conversation, frame.title);
    if (frame.conversation !== this.state.conversation) return;
    this.state.title = frame.title;
    this.around.showTitle(this.state);
  }

  #isBusy() {
    return busyTurn(this.state) !== null;
  }

  #afterChange() {
    const unconfirmed = this.state.conversation === null && this.state.turns.length > 0;
    this.composer.setBusy(this.#isBusy());
    this.composer.setQuestion(openQuestion(this.state));
    this.log.setBusy(this.#isBusy());
    this.composer.setReady(this.socket.status !== "refused" && !unconfirmed);
    this.around.showMemory(this.state);
    this.#letGo();
    this.scroll.keep();
  }

  /** Turns far above the end leave the page, which else would grow for as long as one talks; scrolling up brings them back. */
  #letGo() {
    const { turns } = this.state;
    if (turns.length <= MOST_TURNS || !this.scroll.isFollowing || this.loading) return;
    const far = turns.slice(0, -KEPT_TURNS);
    if (far.some((turn) => !ENDED.has(turn.state) || this.log.viewOf(turn)?.element.contains(document.activeElement))) return;
    turns.splice(0, far.length);
    this.log.drawAll(this.state);
    this.around.showEarlier(true);
  }

  /** Messages and answers of this conversation that were sent before a reload and are not confirmed yet. */
  #addPending() {
    for (const frame of this.outbox.frames) {
      const belongs = (frame.conversation ?? null) === this.state.conversation;
      if (frame.type === "answer") {
        const call = belongs ? findCall(this.state, frame.id) : null;
        if (call?.state === "done" || call?.state === "error") this.#onAnswered(frame.id, call);
        else if (call) call.answer = frame.text;
        else if (belongs) this.outbox.remove(frame.client_id);
      } else if (belongs && (frame.text || frame.files?.length) && !this.state.turns.some((turn) => turn.clientId === frame.client_id)) {
        addOptimistic(this.state, { clientId: frame.client_id, text: frame.text, replaces: frame.replaces ?? null, files: frame.files ?? [] });
      }
    }
  }

  #editLast() {
    const turn = lastTurn(this.state);
    if (!turn?.user?.id || this.#isBusy()) return false;
    this.composer.startEdit(turn.user.id, turn.user.text, turn.user.attachments);
    return true;
  }

  /** A file that was deleted is no longer shown beside any message. */
  #withoutFile(id) {
    for (const { user } of this.state.turns) {
      if (user?.attachments?.some((file) => file.id === id)) user.attachments = user.attachments.filter((file) => file.id !== id);
    }
    this.log.drawAll(this.state);
    this.composer.focus();
  }

  #listen() {
    // Earlier messages come as the reader gets near the first; the button is for those who do not scroll.
    const near = new IntersectionObserver(([entry]) => entry.isIntersecting && this.#loadEarlier(), { root: byId("chat-scroll"), rootMargin: "600px 0px 0px" });
    near.observe(byId("earlier"));
    document.addEventListener("click", (event) => this.#onClick(event));
    document.addEventListener("keydown", (event) => {
      const free = !event.defaultPrevented && !event.isComposing && !document.querySelector("dialog[open], [popover]:popover-open");
      if (event.key === "Escape" && free) this.stop();
    });
    // Going back is ours: the page stays, the conversation changes.
    document.addEventListener("htmx:before:history:restore", (event) => event.preventDefault());
    window.addEventListener("popstate", () => this.open(conversationInUrl(), { push: false }));
    document.addEventListener("izzy:marked", ({ detail }) => detail.conversation === this.state.conversation && this.#marked(detail.field, detail.value));
    document.addEventListener("izzy:attachment-deleted", ({ detail }) => this.#withoutFile(detail.id));
    document.addEventListener("izzy:renamed", ({ detail }) => this.#onTitle(detail));
    document.addEventListener("izzy:conversations", () => this.around.renewSuggestions());
  }

  #onClick(event) {
    const suggestion = event.target.closest("[data-suggestion]");
    if (suggestion) this.send(suggestion.dataset.suggestion);
    if (event.target.closest("[data-reconnect]")) this.socket.retryNow();
    if (event.target.closest("#earlier")) this.#loadEarlier();
    if (event.target.closest("[data-unarchive]")) this.#unarchive();
    const link = event.target.closest(".conversation-link, #new-chat, .brand-link");
    if (!link || event.defaultPrevented || event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    const conversation = link.closest("[data-conversation-row]")?.dataset.conversationRow ?? null;
    this.open(conversation, { message: conversation && messageOf(link.hash) });
  }
}

/** Whether a snapshot has nothing that the page does not show, as of one in which nothing ever happened: it was brought in. */
function isShown(state, { conversation, seq, messages }) {
  const last = messages.at(-1)?.id;
  return state.loaded && state.conversation === conversation && state.seq === seq && last !== undefined && turnWith(state, last) === state.turns.at(-1);
}

/** Only on the chat page itself; tests build a ChatPage around a socket of their own. */
export function start() {
  const data = byId("chat-snapshot");
  const socket = new ChatSocket(socketUrl());
  const page = new ChatPage({ socket, snapshot: data ? JSON.parse(data.textContent) : null });
  socket.connect();
  return page;
}
