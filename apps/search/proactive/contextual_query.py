"""The contextual query of a message: its content words, and what it takes from the talk before.

How much a word says everywhere, not in one user's few notes, is seen by how many of the example messages of its language (those that
teach concern) have it: "need" stands in many, whatever they are about, "carafe" in none. What was counted is kept beside the packages,
as in English it takes a second. In a language without such messages it is read off the bundled vectors: training has made those of
common words short and those of words that name a subject long (a 2, good 9, car 13, wedding 19, risotto 28).
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from apps.search.embedders.base import Vector
from apps.search.embedders.engines import static_embedder
from apps.search.kept import arrays_kept, kept_file
from apps.search.proactive.concern import FOLDER, Lesson, example_messages, examples_sum
from apps.search.text import analysis
from apps.search.text.analysis import MAX_TERMS, split_words, stems, stop_words
from apps.search.text.words import (
    ASKING_WORDS,
    CHATTER,
    GOING_ON_WORDS,
    OTHER_WORDS,
    SOMEBODY_WORDS,
    SOMETHING_WORDS,
    TIME_WORDS,
)

MAX_CHARS = 2000
"""So much of a message counts: its beginning."""
REPLY_CHARS = 200
"""So much of what went before an encoder reads with it: the beginning of a message of the user's, the end of an answer."""
MAX_CLAUSES = 6
LEAST_CLAUSE = 0.3
"""A clause that says less stands for nothing by itself."""
EMPTY_LENGTH, FULL_LENGTH = 6.0, 18.0
"""The lengths of word vectors that say nothing and that say all they can."""
COMMON = 167
"""A word that so many of EACH example messages have says nothing; one that none has says all it can."""
EACH = 5_000
UNKNOWN = 0.6
"""Weight of a word where the bundled vectors are missing."""
TIME_SHARE = 0.2
"""A word for a time ("on Friday", "this morning") says so much of what it would otherwise: all kinds of things happen
then."""
REPLY_SHARE = 0.5
"""Maximum weight of what came right before, mostly the assistant's, as a share of what the user said earlier."""
EARLIER = 0.5
"""Weight of how the user's message before sounds, beside how the newest does."""
VAGUE = 0.5
"""A question whose content words come to less than this leans on the talk, unless it names numbers or asks the
assistant about itself."""
STATED = 0.3
"""A statement needs so much of its own to lean on the talk: "thank them" asks for nothing."""
_CLAUSES = re.compile(
    r"(?<=[.!?;:\n])\s+|,\s+|\s+(?:and|but|so|because|und|aber|weil|et|mais|y|pero)\s+", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class WordUsage:
    """Of so many example messages in a language, how many have a word of each stem; stems stand by their checksums, ascending."""

    language: str
    forms: NDArray[np.uint32]
    times: NDArray[np.uint32]
    messages: int

    def tells(self, words: Sequence[str]) -> Vector:
        """How much each word says, 0..1, (len(words),)."""
        found = np.array(
            [crc32(form.encode()) for form in stems(list(words), self.language)], dtype=np.uint32
        )
        places = np.minimum(np.searchsorted(self.forms, found), len(self.forms) - 1)
        times = np.where(self.forms[places] == found, self.times[places], 0)
        shares = 1 - np.log1p(times * (EACH / self.messages)) / math.log1p(COMMON)
        return np.maximum(shares, 0).astype(np.float32)


@cache
def word_usage(language: str) -> WordUsage | None:
    """That of a language, read where it is kept; None where there are no messages in it."""
    if not (FOLDER / f"{language}.json").exists():
        return None
    sums = crc32(Path(analysis.__file__).read_bytes(), examples_sum())
    path = kept_file(f"usage-{language}-{crc32(Path(__file__).read_bytes(), sums):08x}.npz")
    parts = arrays_kept(path, lambda: usage_of(example_messages(language)[0], language))
    return WordUsage(language, parts["forms"], parts["times"], int(parts["messages"]))


def usage_of(texts: Sequence[str], language: str) -> dict[str, NDArray[np.uint32]]:
    """The parts of `WordUsage` for some messages."""
    having = Counter(form for text in texts for form in set(stems(split_words(text), language)))
    sums = np.array([crc32(form.encode()) for form in having], dtype=np.uint32)
    order = np.argsort(sums, kind="stable")
    times = np.fromiter(having.values(), dtype=np.uint32, count=len(having))
    return {"forms": sums[order], "times": times[order], "messages": np.array(len(texts), np.uint32)}


@dataclass(frozen=True, slots=True)
class ContextualQuery:
    """Text searched for in the talk's stead. `queries` are it and, where the newest message stands for itself, the clauses of that
    which tell of something, each with the weights of its words.

    `words` says how much each word of `text` counts each time it stands there, 0..1, and `content` how much it says beside.
    `lean` is how much of the talk before it takes in, 0..1; `before` is what the user said there, where it does. `whole` is the newest
    message `in_context`, whether it leans on that or not.
    """

    text: str = ""
    newest: str = ""
    before: str = ""
    whole: str = ""
    words: Mapping[str, float] = field(default_factory=dict)
    content: Mapping[str, float] = field(default_factory=dict)
    lean: float = 0.0
    queries: Sequence[tuple[str, Mapping[str, float]]] = ()

    def concern_by(self, lesson: Lesson) -> float:
        """`Lesson.concern` of the newest message, and as far as it leans on what the user said before, of that: "and in Latin?"
        concerns nobody where that did not."""
        sounds = lesson.concern(self.newest)
        return sounds + EARLIER * self.lean * lesson.concern(self.before) if self.before else sounds


@dataclass(frozen=True, slots=True)
class _Message:
    text: str
    words: list[str]
    content: dict[str, float]

    @property
    def substance(self) -> float:
        """How much its content words say together; 1: one word that tells of a subject."""
        return sum(self.content.values())


def contextual_query(talk: Sequence[str], languages: Collection[str]) -> ContextualQuery:
    """The query for the newest of some messages (oldest first, three at most count), which are written in `languages`."""
    newest = _message(talk[-1], languages)
    lean = _leaning(newest) if len(talk) > 1 else 0.0
    parts, earlier = [(newest, 1.0)], ""
    if lean:
        before = [_message(text, languages) for text in talk[-3:-1]]
        reply, share = before[-1], REPLY_SHARE
        if len(before) > 1:  # a long answer counts no more than what it answers
            parts.append((before[0], lean))
            earlier = before[0].text
            share *= min(1.0, before[0].substance / max(reply.substance, 1e-6))
        parts.append((reply, lean * share))
    words: dict[str, float] = {}
    content: dict[str, float] = {}
    for message, share in parts:
        for word, says in message.content.items():
            words[word] = max(words.get(word, 0.0), share * (TIME_SHARE if word in TIME_WORDS else 1.0))
            content[word] = max(content.get(word, 0.0), share * says)
    times = Counter(word for message, _ in parts for word in message.words)
    words = {word: weight / times[word] for word, weight in words.items()}
    # The newest first: of a long text an encoder reads the beginning, and it weighs that more.
    text = "\n".join(message.text for message, _ in parts)
    queries: list[tuple[str, Mapping[str, float]]] = [(text, words)]
    clauses = [] if lean else [part for part in _CLAUSES.split(newest.text) if part.strip()]
    for clause in clauses if len(clauses) > 1 else ():
        said = set(split_words(clause))
        if sum(newest.content.get(word, 0.0) for word in said) >= LEAST_CLAUSE:
            queries.append((clause, {word: words[word] for word in said & words.keys()}))
    return ContextualQuery(
        text, newest.text, earlier, in_context(talk), words, content, lean, queries[: 1 + MAX_CLAUSES]
    )


def in_context(talk: Sequence[str]) -> str:
    """The newest message of a talk with what went before, as an encoder reads it, who tells by itself what of it counts; empty where
    nothing did."""
    if len(talk) < 2:
        return ""
    *said, reply = talk[-3:-1]
    # Of a long answer its end, where it may ask something. The newest first: it weighs more, and nothing of it is cut.
    return "\n".join(
        (talk[-1][:MAX_CHARS], *(text[:REPLY_CHARS] for text in said), reply[-REPLY_CHARS:])
    )


def _message(text: str, languages: Collection[str]) -> _Message:
    text = text[:MAX_CHARS]
    words = split_words(text)[:MAX_TERMS]
    silent = CHATTER.union(*map(stop_words, languages))
    content = [word for word in dict.fromkeys(words) if word not in silent and not word.isdigit()]
    usages = [usage for language in languages if (usage := word_usage(language)) is not None]
    shares = [usage.tells(content) for usage in usages] or [_by_vectors(content)]
    weights = dict(zip(content, np.min(shares, axis=0).tolist(), strict=True))
    for word in TIME_WORDS & weights.keys():
        weights[word] *= TIME_SHARE
    return _Message(text, words, weights)


def _by_vectors(words: Sequence[str]) -> Vector:
    """How much words say by the lengths of their vectors, 0..1, (len(words),)."""
    if (embedder := static_embedder()) is None:
        return np.full(len(words), UNKNOWN, dtype=np.float32)
    shares = (embedder.word_lengths(words) - EMPTY_LENGTH) / (FULL_LENGTH - EMPTY_LENGTH)
    return np.asarray(np.clip(shares, 0, 1), dtype=np.float32)


def _leaning(newest: _Message) -> float:
    """How much of the talk before the newest message takes in: 0 nothing, 1 as if it had been said again."""
    words = set(newest.words)
    names_somebody = not SOMEBODY_WORDS.isdisjoint(words)
    goes_on = newest.words[:1] and newest.words[0] in GOING_ON_WORDS
    refers = names_somebody or goes_on or not SOMETHING_WORDS.isdisjoint(words)
    if any(mark in newest.text for mark in "?？؟") or not ASKING_WORDS.isdisjoint(words):
        whole = any(word.isdigit() for word in words) or not OTHER_WORDS.isdisjoint(words)
        return 1.0 if refers or (newest.substance < VAGUE and not whole) else 0.0
    return 0.5 if names_somebody and newest.substance >= STATED else 0.0
