// What a build's state and messages are called on its card.

const TITLES = {
  queued: (name) => `Waiting to build ${name}`,
  running: (name) => `Building ${name}`,
  done: (name) => `${name} is ready`,
  approval: (name) => `${name} is built and waits for your approval`,
  secrets: (name) => `${name} is built and needs a secret`,
  testing: (name) => `${name} is being tested`,
  failing: (name) => `${name} failed its test`,
  replaced: (name) => `${name} has a newer version`,
  failed: (name) => `${name} could not be built`,
  cancelled: (name) => `Building ${name} was cancelled`,
};

/** What a complete build's version waits for, by its newest message. */
const STAGES = { ready: "done", approval: "approval", secrets: "secrets", testing: "testing", failing: "failing", replaced: "replaced" };

/** The state a card shows, by its messages: what came last decides, whatever was fetched before. */
export function stateOf(messages, fetched = "queued") {
  const last = messages.at(-1);
  if (last?.type === "complete") return STAGES[last.payload.stage] ?? "done";
  if (last?.type === "error") return last.payload.code === "cancelled" ? "cancelled" : "failed";
  if (["failed", "cancelled"].includes(fetched)) return fetched;
  return messages.length > 1 ? "running" : "queued";
}

export function titleOf(state, name) {
  return TITLES[state](name);
}

export const isOpen = (state) => state === "queued" || state === "running";

/** Whether something may come without the user's doing, or from another of their tabs. */
export const mayChange = (state) => isOpen(state) || ["approval", "secrets", "testing"].includes(state);

/** Questions that nobody has answered: the answer is a later message that names the question. */
export function openQuestions(messages) {
  return messages.filter((message) => message.type === "question" && !answerTo(message.id, messages));
}

/** The answer to a question, which may not have come. */
export const answerTo = (id, messages) => messages.find((message) => message.type === "answer" && message.payload.question === id);

/** Whether the builder has gone on without an answer: it says nothing else while it waits for one. */
export function isLate(question, messages) {
  return messages.some((message) => message.number > question.number && message.direction === "to_user");
}

/** One line for each message; an answer stands with its question. */
export function linesOf(messages) {
  const lines = [];
  for (const message of messages) {
    const { payload } = message;
    if (message.type === "progress") lines.push({ text: payload.text, kind: payload.stage });
    else if (message.type === "question") lines.push({ text: payload.text, kind: "question", id: message.id });
    else if (message.type === "answer") lines.push({ text: answerText(payload), kind: "answer" });
    else if (message.type === "complete") lines.push({ text: payload.text, kind: payload.stage === "failing" ? "error" : "complete" });
    else if (message.type === "error") lines.push({ text: payload.text, kind: "error" });
  }
  return lines;
}

function answerText(payload) {
  if (payload.decision) return payload.decision === "allow" ? "You allowed it." : "You declined.";
  return `You: ${payload.text}`;
}

/** When it is tested, and what is in use until then. */
export function permissionNote({ version, secrets, stage }) {
  const stored = secrets.length === 1 ? "its secret is stored" : "its secrets are stored";
  const allowed = secrets.length > 0 ? `you have allowed this and ${stored}` : "you have allowed this";
  const next = `Izzy tests it as soon as ${stage === "secrets" ? stored : allowed}`;
  return version > 1 ? `${next}. The version before stays in use until it has passed.` : `${next}.`;
}

/** The line beneath the title: what it does just now, why it has not begun, or why it failed. */
export function nowText(state, last, build, newest, whole) {
  if (state === "failed") {
    // The build has the reason itself, for its own page; its message as much of it as may be said in a conversation.
    const own = build?.error?.message;
    const said = newest?.type === "error" ? newest.payload.text : undefined;
    return whole ? own ?? said ?? "" : (said ?? own ?? "").split("\n")[0];
  }
  if (state === "failing") return newest.payload.problem;
  if (!isOpen(state)) return "";
  if (state === "queued") return build?.held_up || "It begins in a moment.";
  return last && last.kind !== "question" ? `${last.text}…`.replace(/[.…]+$/, "…") : "";
}
