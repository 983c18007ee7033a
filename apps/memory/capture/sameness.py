"""Whether two notes say the same. Vectors alone cannot tell: "50 mg" and "100 mg", "likes" and "does not like" are as
near to one another as two ways of saying one thing (measured: see docs/architecture.md). So what vectors find alike
must also agree in names, numbers and in whether it affirms or denies."""

import re
import unicodedata
from dataclasses import dataclass

from apps.memory.trust.denial import denies
from apps.memory.trust.words import Words, words_of
from apps.search.language.analysis import split_words

MAX_CHARS = 8000
"""Of longer texts the beginning is compared."""
SAME = 0.85
"""Calibrated similarity (`apps.search.selectors.similar`) from which on two notes may be the same."""
SHARED_WORDS = 0.8
"""Share of words, of both notes, from which on they say the same without any vectors."""
SHARED_IN_LONG = 3
"""Shared words from which on a text is long, for the question whether one other word makes a difference."""

_NUMBER_WORDS = {
    word: str(number)
    for words in (
        "zero one two three four five six seven eight nine ten eleven twelve",
        "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
    )
    for number, word in enumerate(words.split())
}
_DATES = re.compile(
    r"\b\d{1,4}(?:[-./:]\d{1,4}){1,5}\b|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tues|wednes|thurs|fri|"
    r"satur|sun)[a-z]*\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Told:
    """A text with its telling words, to be compared with many."""

    text: str
    words: frozenset[str]


def told(text: str) -> Told:
    return Told(text, _words(text).stated)


def same_told(one: Told, two: Told) -> bool:
    """Whether two texts say the same going by their words alone."""
    if not one.words or not two.words:
        return " ".join(one.text.split()).casefold() == " ".join(two.text.split()).casefold()
    return _share_words(one, two) and not differs(one.text, two.text)


def _share_words(one: Told, two: Told) -> bool:
    return len(one.words & two.words) >= SHARED_WORDS * max(len(one.words), len(two.words))


def denies_other(first: str, second: str) -> bool:
    """Whether of two texts in the same words one affirms what the other denies."""
    one, two = told(first), told(second)
    return bool(one.words) and _share_words(one, two) and denies(first) != denies(second)


def same_words(first: str, second: str) -> bool:
    """`same_told` of two texts."""
    return same_told(told(first), told(second))


def says_the_same(first: str, second: str, similarity: float) -> bool:
    """Whether two texts say the same, given their calibrated similarity (0 where no vector is known)."""
    return same_words(first, second) or (similarity >= SAME and not differs(first, second))


def differs(first: str, second: str) -> bool:
    """Whether the texts disagree: in a number, a date, a name of which each has one of its own, or in yes and no."""
    if _figures(first) != _figures(second) and _figures(first) and _figures(second):
        return not (_figures(first) <= _figures(second) or _figures(second) <= _figures(first))
    if denies(first) != denies(second):
        return True
    one, two = _words(first), _words(second)
    return (_lacks(second, one) and _lacks(first, two)) or _one_word_swapped(one.stated, two.stated)


def _lacks(text: str, words: Words) -> bool:
    """Whether a text has not all of the names, numbers and addresses."""
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARS]).casefold()
    return any(word not in folded for word in words.strict)


def _one_word_swapped(first: frozenset[str], second: frozenset[str]) -> bool:
    """Whether the texts are alike but for one word each: "plays chess …", "plays tennis …".

    In a long text one word hardly moves the vector; in a short one it does, so there the vector is believed.
    """
    mine, yours = first - second, second - first
    if len(mine) != 1 or len(yours) != 1 or len(first & second) < SHARED_IN_LONG:
        return False
    return min(mine)[:4] != min(yours)[:4]


def adds_to(new: str, old: str) -> bool:
    """Whether `new` holds all of the words of `old` and more."""
    one, two = _words(new).stated, _words(old).stated
    return bool(two) and two < one


def _words(text: str) -> Words:
    return words_of(text[:MAX_CHARS])


def _figures(text: str) -> set[str]:
    numbers = set(re.findall(r"\d+", text)) | {
        match.group()[:3].lower() for match in _DATES.finditer(text) if match.group()[0].isalpha()
    }
    return numbers | {
        _NUMBER_WORDS[word] for word in split_words(text) if word in _NUMBER_WORDS and word != "one"
    }
