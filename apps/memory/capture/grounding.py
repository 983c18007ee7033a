"""How far an item may be trusted: computed from the words it stands on, never taken from the model."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from apps.memory.denial import turns_round
from apps.memory.models import Trust
from apps.memory.trust import least_trust
from apps.search.language.analysis import detect_language, split_words, stems, stop_words

from .said import Segment

STEM_CHARS = 5
"""Words that begin with the same letters, so many, count as forms of one another ("allergic", "allergy")."""
GROUNDED_SHARE = 0.5
"""The share of an item's words that must stand in the segments it cites."""

MAX_CHARS = 8000
"""Of longer texts the beginning counts."""

_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S+|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\w.-])[\w-]+(?:\.[\w-]+)*\.[a-z]{2,}\b(?:/\S*)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NAME = re.compile(r"(?<![.!?:]\s)(?<!^)\b[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω][\w'’-]*", re.MULTILINE)
_DATE = re.compile(r"\b\d{4}-\d{2}(?:-\d{2})?\b|\b(?:19|20)\d{2}\b")
_MONTHS = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "januar",
        "februar",
        "märz",
        "mai",
        "juni",
        "juli",
        "oktober",
        "dezember",
        "montag",
        "dienstag",
        "mittwoch",
        "donnerstag",
        "freitag",
        "samstag",
        "sonntag",
    ]
)
_FRAME = frozenset(
    [
        "user",
        "users",
        "izzy",
        "assistant",
        "wants",
        "want",
        "said",
        "says",
        "say",
        "told",
        "has",
        "have",
        "is",
        "are",
        "was",
        "der",
        "die",
        "das",
        "benutzer",
    ]
)
"""Words that an extractor adds by itself: they say nothing about where an item comes from."""


@dataclass(frozen=True, slots=True)
class Words:
    """The telling words of a text: addresses, numbers and names as written, and the stems of all others."""

    strict: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    text: str = field(default="", compare=False)


def words_of(text: str) -> Words:
    """The telling words of a text, with dates, which a model works out from "yesterday", among the plain ones."""
    folded = unicodedata.normalize("NFKC", text[:MAX_CHARS])
    bare = _DATE.sub(" ", folded)
    addresses = {match.group().rstrip(".,;:!?)").casefold() for match in _ADDRESS.finditer(bare)}
    rest = _ADDRESS.sub(" ", bare)
    numbers = set(_NUMBER.findall(rest))
    names = {word for match in _NAME.finditer(rest) for word in split_words(match.group())}
    language = detect_language(folded)
    stop = stop_words(language) | stop_words("en") | _FRAME
    plain = [
        word
        for word in split_words(_NUMBER.sub(" ", rest))
        if word not in stop and word not in _MONTHS and len(word) > 1
    ]
    strict = {name for name in names if name in set(plain)} | numbers | addresses
    return Words(
        frozenset(strict),
        frozenset(stems([word for word in plain if word not in strict], language)),
        folded.casefold(),
    )


def trust_of_item(content: str, evidence: Sequence[int], segments: Sequence[Segment]) -> Trust:
    """The least trust of the segments an item cites; of the whole window where they do not hold its words.

    They do not where it denies what they affirm or the other way round, where a name, number or address of the item, or half of its other words, is not in them, or where a
    word that is missing stands in an untrusted segment. Without evidence the whole window counts.
    """
    everything = least_trust(Trust.USER, *(segment.trust for segment in segments))
    cited = [segments[place] for place in evidence]
    if not cited:
        return everything
    words, base = words_of(content), words_of("\n".join(segment.text for segment in cited))
    strict = {word for word in words.strict if not has_word(base, word, strict=True)}
    plain = {word for word in words.plain if not has_word(base, word)}
    foreign = words_of("\n".join(s.text for s in segments if s.trust == Trust.UNTRUSTED and s not in cited))
    borrowed = any(has_word(foreign, word) for word in {*strict, *plain})
    total = len(words.strict) + len(words.plain)
    reversed_ = turns_round(content, [segment.text for segment in cited])
    if strict or borrowed or reversed_ or len(plain) > total * GROUNDED_SHARE:
        return everything
    return least_trust(*(segment.trust for segment in cited))


def has_word(base: Words, word: str, *, strict: bool = False) -> bool:
    """Whether a text has the word, or unless `strict` one of its forms."""
    if word in base.strict or word in base.plain:
        return True
    if strict:
        return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", base.text) is not None
    return any(_forms(word, other) for other in base.plain) or any(
        _forms(word, other) for other in base.strict
    )


def _forms(first: str, second: str) -> bool:
    return (
        len(first) >= STEM_CHARS and len(second) >= STEM_CHARS and first[:STEM_CHARS] == second[:STEM_CHARS]
    )


def is_read_before(evidence: Iterable[int], segments: Sequence[Segment]) -> bool:
    """Whether an item rests on nothing but what the window before held."""
    places = list(evidence)
    return bool(places) and all(segments[place].seen for place in places)
