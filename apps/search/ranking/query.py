"""A question, taken apart for one owner: terms with their postings, names, dates, vector."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from itertools import chain, islice
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from apps.accounts.selectors import zone_named
from apps.search.backends import Head
from apps.search.embedders.base import QueryWeights, Vector
from apps.search.embedders.engines import static_embedder
from apps.search.features import text_hash
from apps.search.index.cache import index_open
from apps.search.index.rows import UserRows
from apps.search.spaces import side_query
from apps.search.text.analysis import (
    MAX_TERMS,
    one_edit_from,
    split_words,
    stems,
    stop_words,
)
from apps.search.text.dates import DATE_WORDS, Span, named_dates
from apps.search.text.words import CHATTER, OTHER_WORDS, SELF_WORDS, TIME_WORDS

Rows = NDArray[np.int64]

MAX_QUERY_CHARS = 20_000
FEW_NOTES = 100
"""With this many passages an owner's own word frequencies and the vocabulary's ranks weigh the same."""
PREFIX_WEIGHT = 0.7
MIN_PREFIX = 3
MAX_SLIPS = 4
"""Words of a question that may be misspelt names; each costs about half a millisecond."""
SPREAD_SHARE = 0.25
TIME_SHARE = 0.2
"""A word for a time says so much of what another word says: all kinds of things happen on a Friday."""
ROLES = frozenset({"user", "assistant"})
"""Speakers of Izzy's own conversations, which are no names."""
_ROLE_HASHES = frozenset(map(text_hash, ROLES))
_WORD = re.compile(r"(?P<name>[^\W_]+)(?:['’]s\b)?", re.IGNORECASE)
_SAYS = dict.fromkeys(TIME_WORDS, TIME_SHARE) | dict.fromkeys(CHATTER, 0.0)


@dataclass(frozen=True, slots=True)
class Term:
    """One word of the question: the rows that have it (in any of its forms), ascending, and its inverse document frequency."""

    rows: Rows
    idf: float
    weight: float = 1.0
    forms: tuple[str, ...] = ()
    word: str = ""

    def is_in(self, stems: Iterable[str]) -> bool:
        """Whether it is among the stems, or where it is looked for as a beginning, begins one."""
        if self.weight == PREFIX_WEIGHT:
            return any(stem.startswith(self.forms[0]) for stem in stems)
        return not frozenset(self.forms).isdisjoint(stems)


@dataclass(slots=True)
class Query:
    """`terms` are the words that say what is asked; `unknown` sums the weight of those found nowhere.

    `substance` is 1 where at least one word names a subject, 0 where all of them only greet, thank or agree.

    `spans` are the dates it names, as days of `zone`, the owner's.

    `vector` is that in the base space, `side_vector` that of the encoder beside it. Cosines that differ by less than
    `least_spread` over all rows are not blown up to the full scale: among a handful of notes the difference is chance.
    """

    text: str
    terms: list[Term] = field(default_factory=list)
    unknown: float = 0.0
    substance: float = 0.0
    names: list[int] = field(default_factory=list)
    named_rows: list[Rows] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    zone: tzinfo = UTC
    about_self: bool = False
    vector: Vector | None = None
    least_spread: float = 0.0
    side_vector: Vector | None = None
    least_side_spread: float = 0.0

    @property
    def is_empty(self) -> bool:
        return not self.terms and self.vector is None and self.side_vector is None


def understand(text: str, rows: UserRows, head: Head, *, now: datetime) -> Query:
    """Take a question apart. A vector is missing where its embedder cannot answer: search then goes by the rest."""
    text, words = put_right(text[:MAX_QUERY_CHARS], rows)
    query = Query(text, least_spread=SPREAD_SHARE * (head.base.match - head.base.noise))
    weights = _add_terms(query, words, rows)
    if not DATE_WORDS.isdisjoint(words) or any(sign.isdigit() for sign in query.text):
        happened = rows.features["happened"][: rows.size]
        first, last = (
            datetime.fromtimestamp(float(moment), UTC) for moment in (happened.min(), happened.max())
        )
        # Of those on offer English alone begins with the month.
        day_first = head.language != "en" if head.language else None
        query.zone = zone_named(head.time_zone)
        query.spans = named_dates(
            query.text, now=now, first=first, last=last, day_first=day_first, zone=query.zone
        )
    trust = rows.living / (rows.living + FEW_NOTES)
    if words:
        if (embedder := static_embedder()) is not None:
            query.vector = embedder.embed_query(query.text, QueryWeights(weights, trust))
        if head.side is not None and rows.side is not None:
            asked = encoder_question(query.text, rows)
            query.side_vector = side_query(head.side, asked, rows.languages_of(query.text))
            query.least_side_spread = SPREAD_SHARE * (head.side.match - head.side.noise)
    return query


def encoder_question(text: str, rows: UserRows) -> str:
    """The text that an encoder is asked: a question without the names of speakers, which what they say does not repeat.

    Who spoke is the signal `name`'s. A question that says nothing else stays whole.
    """

    def without(word: re.Match[str]) -> str:
        name = word["name"].casefold()
        return "" if name not in ROLES and text_hash(name) in rows.names else word[0]

    left = " ".join(_WORD.sub(without, text).split())
    languages = rows.languages_of(text)
    says = any(not any(word in stop_words(code) for code in languages) for word in split_words(left))
    return left if says else text


def query_prepare(user_id: UUID, text: str) -> None:
    """Have the encoder's vector of a question ready where there is one, for whoever needs it while the user's index is locked."""
    with index_open(user_id) as opened:
        if opened is None or opened[0].side is None or opened[1].side is None:
            return
        head, rows = opened
        text = put_right(text, rows)[0]
        question, languages = encoder_question(text, rows), rows.languages_of(text)
    side_query(head.side, question, languages)


def put_right(text: str, rows: UserRows) -> tuple[str, list[str]]:
    """A question and its words, the misspelt name of a speaker put right in both.

    That is a word that no passage has and that is one edit from the name of one speaker.
    """
    words, names = split_words(text)[:MAX_TERMS], rows.names - _ROLE_HASHES
    if not names:
        return text, words
    languages = rows.languages_of(text)
    forms = {
        word: _forms(word, languages)
        for word in _content(words, languages)
        if text_hash(word) not in rows.names
    }
    posted = rows.posted(chain.from_iterable(forms.values()))
    unknown = (word for word, known in forms.items() if not len(_union(known, posted)))
    for word in islice(unknown, MAX_SLIPS):
        meant = {name for name in one_edit_from(word) if text_hash(name) in names}
        if len(meant) == 1:
            (name,) = meant
            text = re.sub(rf"(?<!\w){re.escape(word)}(?!\w)", name, text, flags=re.IGNORECASE)
            words = [name if each == word else each for each in words]
    return text, words


def _content(words: Iterable[str], languages: list[str]) -> list[str]:
    """The words that say something, each once."""
    return [
        word for word in dict.fromkeys(words) if not any(word in stop_words(code) for code in languages)
    ]


def _forms(word: str, languages: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(stem for code in languages for stem in stems([word], code)))


def _add_terms(query: Query, words: list[str], rows: UserRows) -> dict[str, float]:
    """Fill in terms and names; returns word -> how much it says, 0..1."""
    languages = rows.languages_of(query.text)
    content = _content(words, languages)
    query.substance = min(sum(_SAYS.get(word, 1.0) for word in content), 1.0)
    query.names = [text_hash(word) for word in content if text_hash(word) in rows.names]
    topics = [word for word in content if text_hash(word) not in rows.names]
    # In Izzy's own conversations "I" is the user and "you" the assistant; notes are about them too.
    for pronouns, speaker in ((SELF_WORDS, "user"), (OTHER_WORDS, "assistant")):
        if text_hash(speaker) in rows.names and not pronouns.isdisjoint(words):
            query.names.append(text_hash(speaker))
            query.about_self = True
    forms = {word: _forms(word, languages) for word in content}
    posted = rows.posted(chain.from_iterable(forms.values()))
    query.named_rows = [_union(forms[word], posted) for word in content if word not in topics]
    top = _idf(0, rows.living)
    weights: dict[str, float] = dict.fromkeys(content, 0.3)
    seen: set[tuple[str, ...]] = set()
    for word in topics or content:
        term = _term(word, forms[word], posted, rows)
        weights[word] = (term.idf if term is not None else top) / top
        if forms[word] in seen:
            continue
        seen.add(forms[word])
        if term is None:
            query.unknown += top
        else:
            query.terms.append(term)
    return weights


def _term(word: str, forms: tuple[str, ...], posted: Mapping[str, Rows], rows: UserRows) -> Term | None:
    found = _union(forms, posted)
    if len(found):
        return Term(found, _idf(len(found), rows.living), forms=forms, word=word)
    if len(word) < MIN_PREFIX or not word.isalpha():
        return None
    begun = rows.begun(forms[0])
    if not len(begun):
        return None
    return Term(begun, _idf(len(begun), rows.living), PREFIX_WEIGHT, forms[:1], word)


def _union(forms: tuple[str, ...], posted: Mapping[str, Rows]) -> Rows:
    found = [posted[form] for form in forms]
    return found[0] if len(found) == 1 else np.unique(np.concatenate(found))


def _idf(frequency: int, living: int) -> float:
    """Inverse document frequency as BM25 has it: log(1 + (N - n + 1/2) / (n + 1/2))."""
    return math.log(1 + (max(living, frequency) - frequency + 0.5) / (frequency + 0.5))
