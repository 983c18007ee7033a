// Calls that did not run are told to the model in its own terms; people are told in theirs.
const RUN = /^(?:\[[^\]\n]*\]\n)?(\w+) failed \((raised|install_failed|timed_out|out_of_memory|bad_result|too_much_output|limit_exceeded)\): /;

const WORDS = [
  ["The user declined this call", "You declined this, so it was not done.", "declined"],
  ["The user stopped the turn", "You stopped this.", "stopped"],
  ["The user wrote a new message", "You wrote something new instead, so it was not done.", "not done"],
  ["The server stopped", "The server stopped meanwhile."],
  ["The turn ended", "The answer ended before this was done."],
];

/** The sentence for people where a call was not run; null for a real failure. */
export function notRun(call) {
  return wordsOf(call)?.[1] ?? null;
}

/** What the reader's own doing made of a call, which is no failure: a word or two; null for any other. */
export function ownDoing(call) {
  return wordsOf(call)?.[2] ?? null;
}

function wordsOf(call) {
  return call.isError ? WORDS.find(([start]) => call.result.startsWith(start)) : undefined;
}

/** The name of the capability that ran and failed by its own fault; null where it was refused, stopped, or none at all. */
export function failedRunOf(call) {
  if (!call.isError || !(call.name.startsWith("cap_") || call.name === "execute_capability")) return null;
  return RUN.exec(call.result)?.[1].replace(/^cap_/, "") ?? null;
}
