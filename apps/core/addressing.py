"""Notes as their owner reads them.

Notes are written for the model, about "the user". On a page that user is the reader, who is "you" wherever the words around
tell what it is: "The user is allergic to shellfish." reads "You are allergic to shellfish.", and where they do not tell, the
text stays as it is. Only what is shown changes: forms, searches and models have the text as it is stored. The same rules
stand in `static/js/core/addressing.js`; one table tests both.
"""

import re

from apps.core.person import SECOND, second_person


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SENTENCES = re.compile(r"((?<=[.!?])\s+|\n+)")
_ADVERBS = (
    "actually almost also always currently ever especially generally just longer mainly mostly never no normally not now "
    "occasionally often only originally previously probably rarely really recently regularly seldom sometimes soon still strongly "
    "then typically usually"
)
_ADVERB = rf"(?:{'|'.join(_ADVERBS.split())})"
_WORD = r"[A-Za-z][A-Za-z'’]*"
_THE_USER = re.compile(
    rf"(?<![\w/])(?:(?P<first>^User)|(?P<the>[Tt]he) [Uu]ser)(?P<own>['’]s\b|\b(?!['’\-/]))"
    rf"(?:(?P<adverbs>(?: {_ADVERB})*) (?P<word>{_WORD}))?"
)
_CLAUSE = re.compile(
    r"(?:\b(?:that|because|when|if|while|since|where|what|which|who|how|why|whether|although|before|after|until)|,) ?$"
)
CLAUSE_CHARS = 12
"""How far back the word before "the user" is looked for."""
_NOUNS = _words(
    "account data experience group guide id input interface list manual name profile setting settings story"
)
"""Nouns that make "the user" a name: the user manual of the boiler is nobody's."""
_AFTER_YOU = _words(
    "a about after again an and as at because before but by during every for from if in into like of on or out over since so "
    "than that the then this to under until up when where which while who with without your"
)
"""Words that follow a person without being said of them."""
_SAME = _words(
    "can cannot can't could couldn't did didn't had hadn't may might must should shouldn't will won't would wouldn't"
)
_PAST = _words(
    "ate became began bought broke brought built came chose cut did drank drew drove fell felt flew forgot fought found gave "
    "got grew heard held kept knew laid learnt led left lent lost made meant met moved paid put quit ran read rode said sang sat saw sent "
    "sold spent spoke stood studied swam taught threw told took thought understood went woke won wore wrote"
)
_VERBS = _words(
    "admire adore agree allow answer appreciate argue ask attend avoid bake become begin believe belong borrow bring build buy care "
    "carry celebrate choose clean climb collect come commute consider cook cycle dance decide deserve dislike do drink drive earn eat "
    "enjoy expect fear feel find finish fish fly follow forget get give go grow handle hate have hear help hike hire hold hope "
    "identify intend invest keep know lack lead learn lend listen live look lose love maintain make manage mean meet miss need "
    "oversee own paint pay plan play practise practice prefer put read receive refuse regret remember rent require ride row run save "
    "say see seem sell send serve share sing sit sleep smoke speak spend stand start stay struggle study suffer suspect swim take "
    "talk teach tell think train travel trust try understand use visit volunteer wait wake walk want watch wear wish work worry write"
)
_MAY_BE_NOUNS = _words(
    "answer care climb cook cycle dance drink drive fear fish help hike hire hope lead look love need paint plan play put "
    "ride row run sing study talk train travel trust use visit wait walk want watch wish work worry"
)
"""Verbs of which the form with an s is a noun as well: they are taken for one after "the user", and beside another only before
what a noun is not followed by."""
_OBJECT = _words(
    "a an the her his their its no not only every each it them him all both in at on to for with as about one two three"
)
_NEXT = re.compile(
    rf"(?P<link>,? (?:and|or|but)(?: then)?|,)(?P<adverbs>(?: {_ADVERB})*) (?P<word>{_WORD})(?P<after> {_WORD})?"
)
JOINED_CHARS = 160
"""How far on a joined verb is looked for."""
_OTHER = re.compile(
    r"\b(?:who|whom|whose|that|which|where|when|because|while|since|if|is|are|was|were|has|does|whether|how)\b|[;:()“”\"]"
)
"""Where another than the user may be spoken of."""


def addressed(text: str) -> str:
    """`The user's sister is Ada. The user likes tea.` as `Your sister is Ada. You like tea.`"""
    if "user" not in text.lower():
        return text
    return "".join(map(_sentence, _SENTENCES.split(text)))


def _sentence(text: str) -> str:
    """A sentence, from its first mention of the user to its last."""
    done, rest = "", text
    while found := _THE_USER.search(rest):
        before = done + rest[: found.start()]
        shown, verb = _mention(found, before)
        rest = rest[found.end() :]
        if verb:
            joined, rest = _joined(rest)
            shown += joined
        done = before + shown
    return done + rest


def _mention(found: re.Match[str], before: str) -> tuple[str, bool]:
    """ "The user" with the word after it, and whether that is a verb that was put into the second person."""
    own, word, adverbs = found["own"], found["word"] or "", found["adverbs"] or ""
    first = not before.strip()
    you = "You" if found["first"] or found["the"] == "The" else "you"
    if own:
        return f"{you}r{adverbs}{f' {word}' if word else ''}", False
    if not word:
        return found[0] if first else you, False  # "The user, a nurse, works at night."
    lower = word.lower().replace("’", "'")
    if not adverbs and (lower in _NOUNS or lower.removesuffix("s") in _NOUNS):
        return found[0], False
    if lower in _AFTER_YOU and not adverbs:
        return f"{you} {word}", False
    clause = first or _CLAUSE.search(before[-CLAUSE_CHARS:]) is not None
    verb = _verb(lower, surely=clause or bool(adverbs))
    if not verb:
        return found[0], False
    return f"{you}{adverbs} {word if verb == lower else verb}", True


def _verb(word: str, *, surely: bool) -> str:
    """The word as it follows "you"; "" where it is not known to be a verb, `surely` where one has to follow."""
    if word in _SAME or word in _PAST or word.endswith("ed"):
        return word
    verb = second_person(word)
    if verb == word:
        return ""
    return verb if surely or word in SECOND or verb in _VERBS else ""


def _joined(rest: str) -> tuple[str, str]:
    """Verbs that are joined to one of the user ("and hates coffee") in the second person, and what is left of the sentence."""
    done = ""
    while found := _NEXT.search(rest, 0, JOINED_CHARS):
        if _OTHER.search(rest[: found.start()]) or _THE_USER.search(rest[: found.end()]):
            break
        lower = found["word"].lower()
        verb, after = second_person(lower), (found["after"] or "").strip().lower()
        noun = verb in _MAY_BE_NOUNS and after not in _OBJECT
        known = lower in SECOND or (verb != lower and verb in _VERBS and not noun)
        end = found.end("word")
        shown = f"{rest[: found.start('word')]}{verb if known else found['word']}"
        done, rest = done + shown, rest[end:]
    return done, rest
