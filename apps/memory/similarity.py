"""Whether two notes say the same. Vectors alone cannot tell: "50 mg" and "100 mg", "likes" and "does not like" are as
near to one another as two ways of saying one thing (measured: see docs/memory.md). So what vectors find alike
must also agree in names, numbers, dates and in whether it affirms or denies."""

import re
import unicodedata
from dataclasses import dataclass
from operator import itemgetter
from uuid import UUID

from apps.search.documents import Scope, Source
from apps.search.embedders.static import can_read
from apps.search.selectors import search, similar
from apps.search.text.analysis import DEFAULT_LANGUAGE, detect_language, split_words, stems, stop_words

NOTES = Scope(sources=frozenset({Source.MEMORY}))
CANDIDATES = 6
MAX_CHARS = 8000
"""Of longer texts the beginning is compared."""
SAME = 0.85
"""Calibrated similarity (`apps.search.selectors.similar`) from which on two notes may be the same."""
SHARED_WORDS = 0.8
"""Share of words, of both notes, from which on they say the same without any vectors."""
SHARED_IN_LONG = 3
"""Shared words from which on a text is long, for the question whether one other word makes a difference."""

# Words by which a note is put into the third person; they claim nothing by themselves.
_FRAMING = """user users nutzer nutzers benutzer utilisateur usuario utente izzy assistant name named names called say
    says said mention mentions mentioned state states stated tell tells told asked remember remembers note
    noted fact person currently now"""
_MONTHS = """january february march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday januar februar märz mai juni juli oktober dezember montag
    dienstag mittwoch donnerstag freitag samstag sonntag"""
_DATE_WORDS = frozenset(_MONTHS.split())
_NO_CONTENT = _DATE_WORDS | frozenset(_FRAMING.split())
_NUMBER_WORDS = {
    word: str(number)
    for words in (
        "zero one two three four five six seven eight nine ten eleven twelve",
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for number, word in enumerate(words.split())
    if word != "one"
}
_TOKEN = re.compile(r"[^\s<>()\[\]{}\"'“”„«»,;]+")
_ADDRESS = re.compile(r"://|@|\w\.[^\W\d_]{2}")
_PREFIX = re.compile(r"^(?:mailto:|[a-z][a-z0-9+.-]*://)?(?:www\.)?")
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_DAY = r"(?:\d{4}-\d{2}(?:-\d{2})?|(?:19|20)\d{2})"
_DATE = re.compile(rf"{_DAY}(?:[-/]{_DAY})*")
_DATE_WORD = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tues|wednes|thurs|fri|satur|sun)[a-z]*\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω][\w'’-]*", re.MULTILINE)
_DENIAL = re.compile(
    r"\b(?:not|no|never|none|nobody|nothing|without|neither|nor|cannot|stopped|quit|former|formerly|\w+n['’]t|"
    r"nicht|kein\w*|nie|niemals|ohne|nunca|jamás|sin|pas|jamais|sans|non|mai|senza|"
    r"hat(?:e|es|ed|ing)|dislik\w*|avoid\w*|detest\w*|refus\w*|loath\w*|can['’]t stand|hass\w*|meid\w*|odia\w*|déteste\w*)\b",
    re.IGNORECASE,
)
_NEVER_OR_MAY = "mai"  # Italian for the one, German and French for the other
_TWICE_IS_YES = frozenset(["en", "de"])


@dataclass(frozen=True, slots=True)
class Content:
    """A text as it is compared with others."""

    text: str
    strict: frozenset[str]  # addresses, numbers, and names: words with a capital inside of a sentence
    words: frozenset[str]  # those, and the stems of all other words that tell something; dates apart


def content_of(text: str) -> Content:
    """Returns the words by which a text is compared."""
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARS])
    addresses: set[str] = set()
    rest, place = "", 0
    for token in _TOKEN.finditer(folded):
        if _ADDRESS.search(token.group()):
            # In one spelling: without scheme, www. and what stands behind it.
            addresses.add(_PREFIX.sub("", token.group().casefold()).rstrip(".:!?/"))
            rest, place = f"{rest}{folded[place : token.start()]} ", token.end()
    rest += folded[place:]
    numbers = {number for number in _NUMBER.findall(rest) if not _DATE.fullmatch(number)}
    language = detect_language(folded)
    stop = stop_words(language) | stop_words(DEFAULT_LANGUAGE) | _NO_CONTENT
    plain = frozenset(split_words(_NUMBER.sub(" ", rest))) - stop
    names = plain & {word for match in _NAME.finditer(rest) for word in split_words(match.group())}
    strict = frozenset([*filter(None, addresses), *numbers, *names])
    return Content(text, strict, strict | frozenset(stems(sorted(plain - names), language)))


def same_content(one: Content, two: Content) -> bool:
    """Whether two texts say the same going by their words alone."""
    if not one.words or not two.words:
        return " ".join(one.text.split()).casefold() == " ".join(two.text.split()).casefold()
    return _share_words(one, two) and not differs(one.text, two.text)


def same_words(first: str, second: str) -> bool:
    """`same_content` of two texts."""
    return same_content(content_of(first), content_of(second))


def says_the_same(first: str, second: str, similarity: float) -> bool:
    """Whether two texts say the same, given their calibrated similarity (0 where no vector is known)."""
    return same_words(first, second) or (similarity >= SAME and not differs(first, second))


def denies_other(first: str, second: str) -> bool:
    """Whether of two texts in the same words one affirms what the other denies."""
    one, two = content_of(first), content_of(second)
    return bool(one.words) and _share_words(one, two) and _denies(first) != _denies(second)


def differs(first: str, second: str) -> bool:
    """Whether the texts disagree: in a number, a date, a name of which each has one of its own, or in yes and no."""
    if _denies(first) != _denies(second):
        return True
    mine, yours = _figures(first), _figures(second)
    if mine and yours and mine != yours:
        return not (mine <= yours or yours <= mine)
    one, two = content_of(first), content_of(second)
    return (_lacks(second, one) and _lacks(first, two)) or _one_word_swapped(one.words, two.words)


def adds_to(new: str, old: str) -> bool:
    """Whether `new` holds all of the words and dates of `old` and more."""
    one, two = content_of(new).words, content_of(old).words
    mine, yours = _figures(new), _figures(old)
    return bool(two) and two <= one and yours <= mine and (two < one or yours < mine)


def adds_nothing(new: str, old: str) -> bool:
    """Whether `new` says in the same words what `old` says, and no more, no date either."""
    one, two = content_of(new), content_of(old)
    return same_content(one, two) and not two.words < one.words and _figures(new) <= _figures(old)


def _share_words(one: Content, two: Content) -> bool:
    return len(one.words & two.words) >= SHARED_WORDS * max(len(one.words), len(two.words))


def _denies(text: str) -> bool:
    """Whether a statement denies something; denied twice is affirmed where the language does not say it twice for weight."""
    found = [word.casefold() for word in _DENIAL.findall(text)]
    if not found:
        return False
    language = detect_language(text)
    if language != "it":
        found = [word for word in found if word != _NEVER_OR_MAY]
    return len(found) % 2 == 1 if language in _TWICE_IS_YES else bool(found)


def _lacks(text: str, content: Content) -> bool:
    """Whether a text has not all of the names, numbers and addresses."""
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARS]).casefold()
    return any(word not in folded for word in content.strict)


def _one_word_swapped(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether the texts are alike but for one word each: "plays chess …", "plays tennis …".

    In a long text one word hardly moves the vector; in a short one it does, so there the vector is believed.
    """
    mine, yours = first - second, second - first
    if len(mine) != 1 or len(yours) != 1 or len(first & second) < SHARED_IN_LONG:
        return False
    return min(mine)[:4] != min(yours)[:4]


def _figures(text: str) -> set[str]:
    """The numbers of a text, in digits, and its months and weekdays."""
    words = set(split_words(text))
    if _NEVER_OR_MAY in words and detect_language(text) == "it":
        words.discard(_NEVER_OR_MAY)
    return (
        set(re.findall(r"\d+", text))
        | {match.group()[:3].lower() for match in _DATE_WORD.finditer(text)}
        | {word[:3] for word in words if word in _DATE_WORDS}
        | {_NUMBER_WORDS[word] for word in words if word in _NUMBER_WORDS}
    )


def near_notes(user_id: UUID, content: str) -> list[tuple[UUID, float]]:
    """Active notes with their calibrated similarity, most alike first.

    Those found by words alone (similarity 0) join them where vectors say too little: where no embedder answers, so that not
    everything looks new, and for scripts of which the bundled vectors know letters alone. Elsewhere none of them matters: of
    2,013 that words alone brought to 4,272 notes of invented people, reworded and denied, none said or denied the same.
    """
    if not content:
        return []
    found = dict(similar(user_id, content, top_k=CANDIDATES, scope=NOTES))
    if not found or not can_read(split_words(content[:MAX_CHARS])):
        for hit in search(user_id, content, top_k=CANDIDATES, scope=NOTES):
            found.setdefault(hit.source_id, 0.0)
    return sorted(found.items(), key=itemgetter(1), reverse=True)
