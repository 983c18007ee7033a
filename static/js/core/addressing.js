// Notes as their owner reads them: "the user" is "you" wherever the words around tell what it is, else the text stays as it is.
// Only what is shown changes; what is stored, edited and searched does not. The rules and lists are those of
// apps/core/addressing.py and apps/core/person.py; one table tests both.

const words = (text) => new Set(text.split(" "));
const ADVERB =
  "(?:actually|almost|also|always|currently|ever|especially|generally|just|longer|mainly|mostly|never|no|normally|not|now|occasionally|often|only|originally|previously|probably|rarely|really|recently|regularly|seldom|sometimes|soon|still|strongly|then|typically|usually)";
const WORD = "[A-Za-z][A-Za-z'’]*";
const THE_USER = new RegExp(
  `(?<![\\w/])(?:(?<first>^User)|(?<the>[Tt]he) [Uu]ser)(?<own>['’]s\\b|\\b(?!['’\\-/]))(?:(?<adverbs>(?: ${ADVERB})*) (?<word>${WORD}))?`,
);
const CLAUSE = /(?:\b(?:that|because|when|if|while|since|where|what|which|who|how|why|whether|although|before|after|until)|,) ?$/;
const NOUNS = words("account data experience group guide id input interface list manual name profile setting settings story");
const AFTER_YOU = words(
  "a about after again an and as at because before but by during every for from if in into like of on or out over since so than that the then this to under until up when where which while who with without your",
);
const SAME = words("can cannot can't could couldn't did didn't had hadn't may might must should shouldn't will won't would wouldn't");
const PAST = words(
  "ate became began bought broke brought built came chose cut did drank drew drove fell felt flew forgot fought found gave got grew heard held kept knew laid learnt led left lent lost made meant met moved paid put quit ran read rode said sang sat saw sent sold spent spoke stood studied swam taught threw told took thought understood went woke won wore wrote",
);
const VERBS = words(
  "admire adore agree allow answer appreciate argue ask attend avoid bake become begin believe belong borrow bring build buy care carry celebrate choose clean climb collect come commute consider cook cycle dance decide deserve dislike do drink drive earn eat enjoy expect fear feel find finish fish fly follow forget get give go grow handle hate have hear help hike hire hold hope identify intend invest keep know lack lead learn lend listen live look lose love maintain make manage mean meet miss need oversee own paint pay plan play practise practice prefer put read receive refuse regret remember rent require ride row run save say see seem sell send serve share sing sit sleep smoke speak spend stand start stay struggle study suffer suspect swim take talk teach tell think train travel trust try understand use visit volunteer wait wake walk want watch wear wish work worry write",
);
const MAY_BE_NOUNS = words(
  "answer care climb cook cycle dance drink drive fear fish help hike hire hope lead look love need paint plan play put ride row run sing study talk train travel trust use visit wait walk want watch wish work worry",
);
const OBJECT = words("a an the her his their its no not only every each it them him all both in at on to for with as about one two three");
const NEXT = new RegExp(`(?<link>,? (?:and|or|but)(?: then)?|,)(?<adverbs>(?: ${ADVERB})*) (?<word>${WORD})(?<after> ${WORD})?`, "d");
const OTHER = /\b(?:who|whom|whose|that|which|where|when|because|while|since|if|is|are|was|were|has|does|whether|how)\b|[;:()“”"]/;
const CLAUSE_CHARS = 12;
const JOINED_CHARS = 160;
const SECOND = {
  is: "are", "isn't": "aren't", was: "were", "wasn't": "weren't", has: "have", "hasn't": "haven't", does: "do", "doesn't": "don't",
};

/** "The user's sister is Ada. The user likes tea." → "Your sister is Ada. You like tea." */
export function addressed(text) {
  if (!/user/i.test(text)) return text;
  return text.split(/((?<=[.!?])\s+|\n+)/).map(sentence).join("");
}

function sentence(text) {
  let done = "";
  let rest = text;
  for (let found = THE_USER.exec(rest); found; found = THE_USER.exec(rest)) {
    const before = done + rest.slice(0, found.index);
    let [shown, isVerb] = mention(found, before);
    rest = rest.slice(found.index + found[0].length);
    if (isVerb) {
      const [verbs, left] = joined(rest);
      shown += verbs;
      rest = left;
    }
    done = before + shown;
  }
  return done + rest;
}

/** "The user" with the word after it, and whether that is a verb that was put into the second person. */
function mention(found, before) {
  const { own, word = "", adverbs = "", first: named, the } = found.groups;
  const first = before.trim() === "";
  const you = named || the === "The" ? "You" : "you";
  if (own) return [`${you}r${adverbs}${word && ` ${word}`}`, false];
  if (!word) return [first ? found[0] : you, false];
  const lower = word.toLowerCase().replaceAll("’", "'");
  if (!adverbs && (NOUNS.has(lower) || NOUNS.has(lower.replace(/s$/, "")))) return [found[0], false];
  if (AFTER_YOU.has(lower) && !adverbs) return [`${you} ${word}`, false];
  const verb = verbOf(lower, first || CLAUSE.test(before.slice(-CLAUSE_CHARS)) || adverbs !== "");
  if (!verb) return [found[0], false];
  return [`${you}${adverbs} ${verb === lower ? word : verb}`, true];
}

/** The word as it follows "you"; "" where it is not known to be a verb, `surely` where one has to follow. */
function verbOf(word, surely) {
  if (SAME.has(word) || PAST.has(word) || word.endsWith("ed")) return word;
  const verb = secondPerson(word);
  if (verb === word) return "";
  return surely || Object.hasOwn(SECOND, word) || VERBS.has(verb) ? verb : "";
}

/** Verbs that are joined to one of the user ("and hates coffee") in the second person, and what is left of the sentence. */
function joined(text) {
  let done = "";
  let rest = text;
  for (let found = NEXT.exec(rest.slice(0, JOINED_CHARS)); found; found = NEXT.exec(rest.slice(0, JOINED_CHARS))) {
    const [from, to] = found.indices.groups.word;
    if (OTHER.test(rest.slice(0, found.index)) || THE_USER.test(rest.slice(0, found.index + found[0].length))) break;
    const lower = found.groups.word.toLowerCase();
    const verb = secondPerson(lower);
    const isNoun = MAY_BE_NOUNS.has(verb) && !OBJECT.has((found.groups.after ?? "").trim().toLowerCase());
    const isKnown = Object.hasOwn(SECOND, lower) || (verb !== lower && VERBS.has(verb) && !isNoun);
    done += rest.slice(0, from) + (isKnown ? verb : found.groups.word);
    rest = rest.slice(to);
  }
  return [done, rest];
}

/** The form that follows "you" of one that follows "the user": `like` of `likes`; without such an ending as it is. */
function secondPerson(word) {
  if (Object.hasOwn(SECOND, word)) return SECOND[word];
  if (!word.endsWith("s") || word.endsWith("ss")) return word;
  if (word.endsWith("ies") && word.length > 4) return `${word.slice(0, -3)}y`;
  return /(?:sh|ch|ss|x|zz|o)es$/.test(word) ? word.slice(0, -2) : word.slice(0, -1);
}
