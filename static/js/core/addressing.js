// Notes as their owner reads them: what is "the user's" is "your", and a sentence about the user begins with what they do.
// Only what is shown changes; what is stored, edited and searched does not. The rules are those of apps/memory/addressing.py and apps/core/person.py.

const words = (text) => new Set(text.split(" "));
const NOUNS = words("account data experience group guide guides id input interface list manual manuals name names profile settings story");
const AFTER_YOU = words(
  "a about after again an and as at because before by during every for from if in into like of on or out over since so than that the then this to under until up when where which while who with without your",
);
const SAME = words("can could did had may might must should will would");
const SECOND = {
  is: "are", "isn't": "aren't", was: "were", "wasn't": "weren't", has: "have", "hasn't": "haven't", does: "do", "doesn't": "don't",
};
const FIRST = /^(?:The user|User)(['’]s\b| (?=[a-z])|\b)/;
const CLAUSE = /(?:\b(?:that|because|when|if|while|since|where|what|which|who|how|why|whether|although|before|after|until)|,) ?$/;

/** "The user's sister is Ada. The user likes tea." → "Your sister is Ada. Likes tea." */
export function addressed(text) {
  if (!/user/i.test(text)) return text;
  return text.split(/((?<=[.!?])\s+|\n+)/).map(sentence).join("");
}

function sentence(text) {
  const first = FIRST.exec(text);
  if (!first) return inside(text);
  const rest = text.slice(first[0].length);
  const follows = /^[a-z'’]*/.exec(rest)[0];
  if (first[1].endsWith("s")) return `Your${inside(rest)}`;
  if (!first[1] || NOUNS.has(follows)) return text;
  const shown = inside(rest);
  return follows === "and" || follows === "or" ? `You ${shown}` : shown.charAt(0).toUpperCase() + shown.slice(1);
}

/** "the user" within a sentence; left alone where the words around do not tell what it is. */
function inside(text) {
  return text.replace(/\bthe user(['’]s\b|\b(?!['’]))(?: ([A-Za-z'’]+))?/gi, (whole, possessive, follows, place) => {
    const you = whole.startsWith("T") ? "You" : "you";
    if (possessive) return `${you}r${whole.slice("the user".length + possessive.length)}`;
    if (!follows) return you;
    const verb = verbOf(follows.toLowerCase(), CLAUSE.test(text.slice(Math.max(0, place - 12), place)));
    return verb ? `${you} ${verb}` : whole;
  });
}

/** The word as it follows "you"; "" where it cannot be told. */
function verbOf(word, inClause) {
  if (NOUNS.has(word)) return "";
  if (AFTER_YOU.has(word) || SAME.has(word)) return word;
  if (Object.hasOwn(SECOND, word)) return SECOND[word];
  if (!inClause || !word.endsWith("s") || word.endsWith("ss")) return "";
  if (word.endsWith("ies") && word.length > 4) return `${word.slice(0, -3)}y`;
  return /(?:sh|ch|ss|x|zz|o)es$/.test(word) ? word.slice(0, -2) : word.slice(0, -1);
}
