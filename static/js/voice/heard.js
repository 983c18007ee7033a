// The words of a recogniser's results. Chrome on Android makes a result of its own, and calls it final, of each growth of one
// sentence, and gives some twice: there one that begins with the words of the one before it stands for both.

const plain = (word) => word.toLowerCase().replace(/[^\p{L}\p{N}]/gu, "");
const begins = (words, others) => others.length <= words.length && others.every((word, place) => plain(word) === plain(words[place]));

/** {words, last}: what was said, as text, behind `before`, the `last` of what was taken up already (a list of words). */
export function heard(results, before = []) {
  const repeats = /Android/i.test(navigator.userAgent);
  const parts = [before];
  let guessed = false; // of a guess the last word may still be another
  for (const result of results) {
    const words = result[0].transcript.trim().split(/\s+/).filter(Boolean);
    const last = parts.at(-1);
    if (words.length === 0 || (repeats && begins(last, words))) continue;
    if (repeats && last.length > 0 && begins(words, guessed && last.length > 1 ? last.slice(0, -1) : last)) parts[parts.length - 1] = words;
    else parts.push(words);
    guessed = result.isFinal && result[0].confidence === 0;
  }
  const last = parts.at(-1);
  parts[0] = parts[0].slice(before.length);
  return { words: parts.flat().join(" "), last };
}
