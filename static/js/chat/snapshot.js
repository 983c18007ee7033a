// A snapshot frame (the stored conversation) becomes the same state that its events would have made.
import { placeSummary } from "./summed-up.js";
import { addBuild, addBuildOf, emptyState, newTurn, spaceAfter, textSegment, toolSegment } from "./state.js";

// A call that waits is asked about where the turn says so; one that is decided goes on with its turn.
const CALL_STATES = { pending: "open", running: "running", waiting: "open", done: "done" };
const OWN_SPEAKERS = new Set(["user", "assistant"]);

/** The state a snapshot describes. */
export function fromSnapshot(snapshot) {
  const state = emptyState(snapshot.conversation);
  state.seq = snapshot.seq;
  state.loaded = true;
  state.title = snapshot.title ?? "";
  state.useMemory = snapshot.use_memory ?? true;
  state.archived = snapshot.archived ?? false;
  state.model = snapshot.model ?? "";
  state.instructions = snapshot.instructions ?? false;
  for (const message of snapshot.messages) addMessage(state, message);
  if (snapshot.turn) addLive(state, snapshot.turn);
  state.builds = snapshot.builds ?? [];
  for (const { turn, build_id: id, replaces } of state.builds) addBuild(state, turn, id, replaces);
  for (const queued of snapshot.queued ?? []) addQueued(state, queued);
  state.summary = snapshot.summary ?? null;
  placeSummary(state);
  return state;
}

function turnOf(state, id, fallback) {
  let turn = id === null ? null : state.turns.find((item) => item.id === id);
  if (!turn) {
    turn = newTurn({ key: id ?? fallback, id, state: "done" });
    state.turns.push(turn);
  }
  return turn;
}

function addMessage(state, message) {
  // Ingested conversations have messages without a turn: one turn for each of the user's.
  const last = state.turns.at(-1);
  const attach = message.turn === null && message.role === "assistant" && last && last.id === null;
  const turn = attach ? last : turnOf(state, message.turn, message.id);
  if (message.state) turn.state = message.state;
  if (message.role === "user") {
    turn.user = { id: message.id, text: message.text, at: message.created_at, speaker: speakerOf(message), attachments: message.attachments ?? [] };
    turn.memories = message.memories ?? [];
    turn.versions = message.versions ?? [];
    turn.error = message.error ?? null;
    turn.usage = message.usage ?? null;
    return;
  }
  turn.messages.push(message.id);
  // What the endpoint ran within its answer stands before the answer's text, as it did live.
  const calls = message.tool_calls ?? [];
  for (const call of calls.filter((item) => item.server)) addCall(turn, call);
  if (message.text) turn.segments.push({ ...textSegment({ html: message.html, text: message.text }), closed: true, speaker: speakerOf(message) });
  for (const call of calls.filter((item) => !item.server)) addCall(turn, call);
}

/** The name of whoever speaks in a conversation that was brought in from elsewhere. */
function speakerOf(message) {
  return !message.speaker || OWN_SPEAKERS.has(message.speaker) ? null : message.speaker;
}

function addCall(turn, call) {
  const segment = toolSegment({ ...call, state: callState(call, turn) });
  const known = turn.segments.findIndex((item) => item.type === "tool" && item.id === call.id);
  if (known >= 0) turn.segments[known] = segment;
  else turn.segments.push(segment);
  addBuildOf(turn, segment);
}

function callState(call, turn) {
  if (call.is_error) return "error";
  const state = CALL_STATES[call.state] ?? "error";
  // What was open when its turn ended will not go on.
  return state === "done" || turn.state === "running" || turn.state === "waiting" ? state : "error";
}

function addLive(state, live) {
  const turn = turnOf(state, live.id, live.id);
  turn.state = live.state;
  turn.retry = live.retry ?? null;
  if (live.memories?.length) turn.memories = live.memories;
  for (const call of live.tool_calls ?? []) addCall(turn, call);
  if (live.text || live.blocks?.length) turn.segments.push(liveText(live));
  for (const ask of live.waiting_for ?? []) addAsk(turn, ask);
}

function liveText(live) {
  const segment = textSegment({ text: live.text });
  for (const { block, html } of live.blocks ?? []) {
    segment.html.set(block, html);
    segment.number = Math.floor(block / 1000);
  }
  segment.tail = segment.html.size === 0 ? live.text : spaceAfter(live.text ?? "");
  return segment;
}

function addAsk(turn, ask) {
  let segment = turn.segments.find((item) => item.type === "tool" && item.id === ask.id);
  if (!segment) {
    segment = toolSegment({ id: ask.id, name: ask.name ?? "ask_user", input: ask.input });
    turn.segments.push(segment);
  }
  segment.state = "asking";
  segment.asks = ask.type === "question" ? "question" : "approval";
  segment.question = ask.text ?? "";
  segment.permission = ask.permission ?? null;
  segment.reason = ask.reason ?? "";
  segment.always = ask.always ?? false;
  segment.reach = ask.reach ?? null;
  if (ask.input) segment.input = ask.input;
}

function addQueued(state, queued) {
  const turn = turnOf(state, queued.turn, queued.turn);
  turn.state = "queued";
  turn.versions = queued.message?.versions ?? [];
  turn.user ??= { id: queued.message?.id ?? queued.message, text: queued.text, at: queued.message?.created_at ?? null, attachments: queued.message?.attachments ?? [] };
}

/** Puts messages from before the first shown turn in front; a turn cut in two by the page becomes whole. */
export function prependEarlier(state, messages) {
  const { conversation, builds } = state;
  const earlier = fromSnapshot({ conversation, seq: 0, messages, turn: null, builds }).turns;
  const first = state.turns[0];
  const last = earlier.at(-1);
  if (first && last && first.id !== null && last.id === first.id) joinBefore(first, earlier.pop());
  state.turns.unshift(...earlier);
  placeSummary(state);
}

/** The beginning of a turn of which the page had the end. */
function joinBefore(turn, beginning) {
  turn.user ??= beginning.user;
  turn.error ??= beginning.error;
  if (turn.memories.length === 0) turn.memories = beginning.memories;
  if (turn.versions.length === 0) turn.versions = beginning.versions;
  turn.messages.unshift(...beginning.messages);
  // The card of a build stands where it was asked for, with what it has heard since.
  const cards = new Map(turn.segments.filter(({ type }) => type === "build").map((card) => [card.id, card]));
  const before = beginning.segments.map((segment) => cards.get(segment.id) ?? segment);
  turn.segments = [...before, ...turn.segments.filter((segment) => !before.includes(segment))];
}
