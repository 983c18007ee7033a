// The conversation on the page as plain data, and the one function that moves it: apply(state, frame).
// Nothing here touches the DOM, so every rule can be tested by feeding it events.

import { parsed } from "./format.js";

/**
 * @typedef {{type: "text", number: number|null, html: Map<number, string>, tail: string, text: string}} TextSegment
 * @typedef {{type: "tool", id: string, name: string, input: object, result: string, isError: boolean,
 *   state: "running"|"done"|"error"|"asking"|"open", durationMs: number|null, progress: object[],
 *   asks: "question"|"approval"|null, question: string, answer: string|null}} ToolSegment
 */

/** States in which nothing more comes for a turn. */
export const ENDED = new Set(["done", "stopped", "failed", "interrupted"]);

export function emptyState(conversation = null) {
  return { conversation, title: "", seq: 0, loaded: false, useMemory: true, archived: false, model: "", instructions: false, turns: [], removed: [], builds: [], summary: null };
}

export function newTurn({ key, id = null, state = "queued", user = null, clientId = null }) {
  return {
    key, id, state, clientId, user, versions: [],
    segments: [], memories: [], messages: [],
    notice: null, error: null, usage: null, summary: null, retry: null, summing: false,
  };
}

export function textSegment({ number = null, html = null, text = "", tail = "" } = {}) {
  return { type: "text", number, html: new Map(html === null ? [] : [[0, html]]), tail, text };
}

export function toolSegment(call) {
  return {
    type: "tool",
    id: call.id,
    name: call.name,
    input: call.input ?? {},
    result: call.result ?? "",
    isError: Boolean(call.is_error),
    state: call.state ?? "running",
    durationMs: call.duration_ms ?? null,
    progress: [],
    covered: call.covered ?? "", // the lasting yes it ran under: "conversation" or "always"
    asks: null,
    question: "",
    answer: null, // the user's, from sending it on
  };
}

export function findTurn(state, id) {
  return state.turns.find((turn) => turn.id === id) ?? null;
}

export function lastTurn(state) {
  return state.turns.at(-1) ?? null;
}

export function busyTurn(state) {
  return state.turns.find((turn) => turn.state === "running" || turn.state === "queued") ?? null;
}

/** The first question that is still to be answered; null for none, and where a new message goes on without. */
export function openQuestion(state) {
  if (state.turns.some((turn) => turn.state === "sending")) return null;
  const waiting = state.turns.filter((turn) => turn.state === "waiting").flatMap((turn) => turn.segments);
  return waiting.find((call) => call.asks === "question" && call.answer === null) ?? null;
}

export function findCall(state, id) {
  return state.turns.flatMap((turn) => turn.segments).find((segment) => segment.type === "tool" && segment.id === id) ?? null;
}

/** The answer to a question as the page shows it before the server has it (null: it was refused). */
export function giveAnswer(state, id, text) {
  const call = findCall(state, id);
  if (call) call.answer = text;
}

/** Whether that is what the call was answered with: it may have been answered elsewhere before, or have ended without. */
export function answeredWith({ result, isError }, text) {
  const plain = (words) => words.replace(/[\s\x1c-\x1f\x85]+/g, " ").trim();
  return !isError && plain(result) === plain(text);
}

/** Whether, after that turn, the user has said something since that time (ISO), or Izzy has gone on by itself. */
export function wentOn(state, turn, since) {
  return state.turns.slice(state.turns.indexOf(turn) + 1).some((later) => {
    if (later.user) return Date.parse(later.user.at ?? "") > Date.parse(since);
    return later.state === "queued" || later.state === "running" || later.segments.some((segment) => segment.type === "tool");
  });
}

/** The message the page shows before the server has confirmed it. */
export function addOptimistic(state, { clientId, text, at = null, replaces = null, files = [] }) {
  const turn = newTurn({ key: clientId, clientId, state: "sending", user: { id: null, text, at, attachments: files } });
  const cut = replaces === null ? -1 : state.turns.findIndex((other) => other.user?.id === replaces);
  if (cut >= 0) state.removed = state.turns.splice(cut);
  state.turns.push(turn);
  return turn;
}

/** The server refused the message: take it away again and bring back what it was to replace. */
export function dropOptimistic(state, clientId) {
  const at = state.turns.findIndex((turn) => turn.clientId === clientId && turn.state === "sending");
  if (at < 0) return null;
  const [turn] = state.turns.splice(at, 1, ...state.removed);
  state.removed = [];
  return turn;
}

/** Moves the state by one event. Returns the turn that changed, or null where nothing did. */
export function apply(state, event) {
  const handler = HANDLERS[event.type];
  if (!handler) return null;
  if (event.conversation && state.conversation && event.conversation !== state.conversation) return null;
  if (event.type !== "html" && event.seq !== undefined) {
    if (event.seq <= state.seq && !confirms(state, event)) return null;
    state.seq = Math.max(state.seq, event.seq);
    const turn = findTurn(state, event.turn);
    if (turn) Object.assign(turn, { retry: null, summing: false });
  }
  return handler(state, event);
}

/** The answer to a message that was sent again after a reconnect repeats an old event; it still confirms. */
function confirms(state, event) {
  return event.type === "turn_queued" && state.turns.some((turn) => turn.state === "sending" && turn.clientId === event.client_id);
}

const HANDLERS = {
  turn_queued: onQueued,
  model_retry: withTurn((turn, { message, at, seconds }) => {
    turn.retry = { message, at, seconds };
  }),
  summing_up: withTurn((turn) => {
    turn.summing = true;
  }),
  turn_started: (state, event) => setState(state, event, "running"),
  turn_resumed: (state, event) => setState(state, event, "running"),
  memory_context: withTurn((turn, event) => {
    turn.memories = event.items;
  }),
  text_delta: withTurn((turn, event) => {
    const segment = openText(turn);
    segment.text += event.text;
    segment.tail += event.text;
  }),
  html: withTurn(onHtml),
  tool_start: withTurn((turn, event) => {
    const call = toolOf(turn, event);
    Object.assign(call, { input: event.input, state: "running", asks: null, covered: event.covered ?? "" });
  }),
  tool_progress: withTurn((turn, event) => {
    toolOf(turn, event).progress.push(event.data);
  }),
  tool_result: withTurn((turn, event) => {
    const call = toolOf(turn, event);
    const ended = event.is_error ? "error" : "done";
    Object.assign(call, { result: event.result, isError: event.is_error, state: ended, asks: null, durationMs: event.duration_ms });
    addBuildOf(turn, call);
  }),
  build: withTurn((turn, event) => {
    buildOf(turn, event.build_id, event.replaces).messages.set(event.message.number, event.message);
  }),
  approval_requested: withTurn((turn, event) => {
    Object.assign(toolOf(turn, event), { input: event.input, state: "asking", asks: "approval", permission: event.permission ?? null, reason: event.reason ?? "", always: event.always ?? false, reach: event.reach ?? null });
  }),
  question: withTurn((turn, event) => {
    Object.assign(toolOf(turn, { ...event, name: "ask_user" }), { state: "asking", asks: "question", question: event.text, reason: event.reason ?? "" });
  }),
  response: withTurn((turn, event) => {
    turn.state = event.pending_question || event.pending_approval ? "waiting" : "done";
    turn.notice = event.notice ?? null;
    turn.usage = event.usage ?? null;
    turn.messages = event.messages ?? turn.messages;
    if (turn.state === "done") closeCalls(turn);
  }),
  turn_stopped: (state, event) => end(state, event, "stopped"),
  error: (state, event) => end(state, event, event.code === "interrupted" ? "interrupted" : "failed", { code: event.code, message: event.message }),
  title: (state, event) => {
    state.title = event.title;
    return lastTurn(state);
  },
};

function withTurn(change) {
  return (state, event) => {
    const turn = findTurn(state, event.turn);
    if (!turn) return null;
    change(turn, event);
    return turn;
  };
}

function onQueued(state, event) {
  state.conversation = event.conversation;
  if (event.title) state.title = event.title;
  const mine = event.client_id ? state.turns.find((turn) => turn.clientId === event.client_id) : null;
  const known = findTurn(state, event.turn) ?? mine;
  const message = { text: event.text, ...(typeof event.message === "object" ? event.message : { id: event.message }) };
  const gone = new Set(event.replaces ?? []);
  // A turn that Izzy opened itself, or whose beginning is not on the page, is known by its answers.
  const isGone = (turn) => [turn.user?.id, ...turn.messages].some((id) => gone.has(id));
  const replaced = (turn) => turn !== known && (turn === mine || isGone(turn) || (turn.user && turn.user.id === message.id));
  state.turns = state.turns.filter((turn) => !replaced(turn));
  // What an edit of this page's own is to replace stays at hand until that one is confirmed or refused.
  state.removed = mine ? [] : state.removed.filter((turn) => !replaced(turn));
  if (!known?.id && event.message !== null) decline(state);
  const turn = known ?? newTurn({ key: event.client_id || event.turn, clientId: event.client_id || null });
  if (!known) state.turns.push(turn);
  turn.id = event.turn;
  if (turn.state === "sending") turn.state = "queued";
  // A turn that Izzy opened itself has no message of the user.
  if (event.message === null) return turn;
  turn.versions = message.versions ?? [];
  turn.user = { id: message.id ?? null, text: message.text ?? turn.user?.text ?? "", at: message.created_at ?? turn.user?.at ?? null, attachments: message.attachments ?? turn.user?.attachments ?? [] };
  return turn;
}

/** A new message goes on without the answer that an earlier turn waited for. */
function decline(state) {
  for (const turn of state.turns) {
    if (turn.state !== "waiting") continue;
    turn.state = "done";
    closeCalls(turn);
  }
}

function setState(state, event, value) {
  const turn = findTurn(state, event.turn);
  if (turn) turn.state = value;
  return turn;
}

function end(state, event, value, error = null) {
  const turn = findTurn(state, event.turn);
  if (!turn) return null;
  turn.state = value;
  turn.error = error;
  turn.messages = event.messages ?? turn.messages;
  closeCalls(turn);
  return turn;
}

/** A call that a stop or an error left open will not be answered any more. */
function closeCalls(turn) {
  for (const segment of turn.segments) {
    if (segment.type !== "tool" || !["running", "asking", "open"].includes(segment.state)) continue;
    segment.state = "error";
    segment.isError = true;
    segment.asks = null;
  }
}

/** The text under way: the last segment, or a new one after a tool call. */
function openText(turn) {
  const last = turn.segments.at(-1);
  if (last?.type === "text" && !last.closed) return last;
  const segment = textSegment();
  turn.segments.push(segment);
  return segment;
}

/** The space a text ends with: rendered HTML ends without it, and the next word needs it. */
export const spaceAfter = (text) => /[ \t]*$/.exec(text)[0];

/** Rendered Markdown replaces what has come as plain text so far. Block number = segment * 1000 + index. */
function onHtml(turn, event) {
  const number = Math.floor(event.block / 1000);
  let segment = turn.segments.find((item) => item.type === "text" && item.number === number);
  if (!segment) {
    segment = openText(turn);
    if (segment.number !== null) {
      segment = textSegment();
      turn.segments.push(segment);
    }
    segment.number = number;
  }
  segment.html.set(event.block, event.html);
  segment.tail = spaceAfter(segment.text);
}

/** The card of a build, where the turn has come to it; a new attempt takes the place of the one before. */
function buildOf(turn, id, replaces = null) {
  const place = (wanted) => turn.segments.findIndex((item) => item.type === "build" && item.id === wanted);
  const before = replaces ? place(replaces) : -1;
  if (place(id) < 0) turn.segments.splice(before < 0 ? turn.segments.length : before, 0, { type: "build", id, messages: new Map() });
  if (before >= 0) turn.segments.splice(place(replaces), 1);
  return turn.segments[place(id)];
}

/** A build that belongs to a turn by itself, such as a second attempt. */
export function addBuild(state, turnId, id, replaces) {
  const turn = findTurn(state, turnId);
  if (turn) buildOf(turn, id, replaces);
}

/** A call that had something built is followed by the card of the build. */
export function addBuildOf(turn, call) {
  if (call.name !== "request_capability" || call.state !== "done") return;
  const id = parsed(call.result)?.build_id;
  if (id) buildOf(turn, id);
}

function toolOf(turn, event) {
  const known = turn.segments.find((segment) => segment.type === "tool" && segment.id === event.id);
  if (known) return known;
  const call = toolSegment({ id: event.id, name: event.name, input: event.input });
  // A call within the answer does not end its text: the card stands before it, and the text goes on.
  const last = turn.segments.at(-1);
  const within = event.server && last?.type === "text" && !last.closed;
  turn.segments.splice(within ? -1 : turn.segments.length, 0, call);
  return call;
}
