"""The contextual query of a message: its content words, what it takes from the talk before, and its concern: how far
it sounds as if its answer depended on the one who wrote it.

How much a word says everywhere, not in one user's few notes, is read off the bundled vectors: training has made those
of common words short and those of words that name a subject long (a 2, good 9, car 13, wedding 19, risotto 28).

Most of what people say to an assistant has nothing to do with what it knows of them: sums, translations, jokes, thanks, the
capital of a country. They say it in other words than what concerns their own lives ("what should I…", "book us…", "when is
Anna's…"). Some thousands of messages of both kinds (`messages/*.json`, a file a language), written for this or for the invented
people of `benchmarks/people/`, teach single words and pairs of neighbours how much they tell: ridge regression on +1 and -1, a few
hundredths of a second once a process. In a language without such a file all messages are alike.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from apps.search.embedders.base import Matrix, Vector
from apps.search.embedders.engines import static_embedder
from apps.search.text.analysis import MAX_TERMS, split_words, stop_words
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
MAX_CLAUSES = 6
LEAST_CLAUSE = 0.3
"""A clause that says less stands for nothing by itself."""
EMPTY_LENGTH, FULL_LENGTH = 6.0, 18.0
"""The lengths of word vectors that say nothing and that say all they can."""
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
class ContextualQuery:
    """Text searched for in the talk's stead. `queries` are it and, where the newest message stands for itself, the clauses of that
    which tell of something, each with the weights of its words.

    `words` says how much each word of `text` counts each time it stands there, 0..1, and `content` how much it says beside.
    `lean` is how much of the talk before it takes in, 0..1; `before` is what the user said there, where it does.
    """

    text: str = ""
    newest: str = ""
    before: str = ""
    words: Mapping[str, float] = field(default_factory=dict)
    content: Mapping[str, float] = field(default_factory=dict)
    lean: float = 0.0
    queries: Sequence[tuple[str, Mapping[str, float]]] = ()

    @property
    def concern(self) -> float:
        return self.concern_by(whole_lesson())

    def concern_by(self, lesson: "Lesson") -> float:
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
    text = "\n".join(message.text for message, _ in reversed(parts))
    queries: list[tuple[str, Mapping[str, float]]] = [(text, words)]
    clauses = [] if lean else [part for part in _CLAUSES.split(newest.text) if part.strip()]
    for clause in clauses if len(clauses) > 1 else ():
        said = set(split_words(clause))
        if sum(newest.content.get(word, 0.0) for word in said) >= LEAST_CLAUSE:
            queries.append((clause, {word: words[word] for word in said & words.keys()}))
    return ContextualQuery(text, newest.text, earlier, words, content, lean, queries[: 1 + MAX_CLAUSES])


def _message(text: str, languages: Collection[str]) -> _Message:
    text = text[:MAX_CHARS]
    words = split_words(text)[:MAX_TERMS]
    silent = CHATTER.union(*map(stop_words, languages))
    content = [word for word in dict.fromkeys(words) if word not in silent and not word.isdigit()]
    if (embedder := static_embedder()) is None:
        weights = dict.fromkeys(content, UNKNOWN)
    else:
        lengths = embedder.word_lengths(content).tolist()
        shares = ((length - EMPTY_LENGTH) / (FULL_LENGTH - EMPTY_LENGTH) for length in lengths)
        weights = {word: min(max(share, 0.0), 1.0) for word, share in zip(content, shares, strict=True)}
    for word in TIME_WORDS & weights.keys():
        weights[word] *= TIME_SHARE
    return _Message(text, words, weights)


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


FOLDER = Path(__file__).parent / "messages"
PERSONAL, IDLE = "personal", "idle"
MAX_WORDS = 40
MARKS = '?":=!%'
RIDGE = 0.1
ENCODER_RIDGE = 1.0
STEPS = 60
"""Steps of conjugate gradients at most; 30 do."""


@cache
def example_messages(language: str = "*") -> tuple[tuple[str, ...], tuple[bool, ...]]:
    """The messages that teach, and which of them are personal; of all languages unless one is named."""
    texts: dict[str, bool] = {}
    for path in sorted(FOLDER.glob(f"{language}.json")):
        kinds = json.loads(path.read_text(encoding="utf-8"))
        texts |= {text: kind == PERSONAL for kind in (PERSONAL, IDLE) for text in kinds[kind]}
    return tuple(texts), tuple(texts.values())


@dataclass(frozen=True, slots=True)
class Lesson:
    """How much each word, and each pair of words, speaks for a personal message; `offset` is what any message has."""

    weights: Mapping[str, float]
    offset: float

    def concern(self, text: str) -> float:
        """About +1 for a message whose answer depends on the user, about -1 for one that is the same for everybody."""
        found = _grams(text)
        return self.offset + sum(self.weights.get(gram, 0.0) for gram in found) / math.sqrt(len(found))


@cache
def whole_lesson() -> Lesson:
    """The lesson of all example messages."""
    return lesson_of(*example_messages())


def lesson_of(texts: Sequence[str], personal: Sequence[bool]) -> Lesson:
    """The lesson of some messages, of which it is said whether they are personal."""
    wanted = np.where(personal, 1.0, -1.0)
    offset = float(wanted.mean())
    grams = [_grams(text) for text in texts]
    places = {gram: place for place, gram in enumerate(dict.fromkeys(g for each in grams for g in each))}
    columns = np.array([places[gram] for each in grams for gram in each])
    sizes = np.array([len(each) for each in grams])
    rows = np.repeat(np.arange(len(grams)), sizes)
    values = np.repeat(1 / np.sqrt(sizes), sizes)
    weights = np.zeros(len(places))
    sums = np.bincount(columns, values * (wanted - offset)[rows], len(places))
    left = np.asarray(sums, dtype=np.float64)
    step, size = left.copy(), float(left @ left)
    for _ in range(STEPS):  # conjugate gradients: the matrix itself would have millions of cells
        along = np.bincount(rows, values * step[columns], len(grams))
        bent = np.bincount(columns, values * along[rows], len(places)) + RIDGE * step
        far = size / float(step @ bent)
        weights += far * step
        left = left - far * bent
        before, size = size, float(left @ left)
        if size < 1e-8:
            break
        step = left + size / before * step
    return Lesson(dict(zip(places, weights.tolist(), strict=True)), offset)


def _grams(text: str) -> list[str]:
    """The distinct words of a text and pairs of neighbours, its ends among them, its marks, and about how long it is.

    All numbers are alike.
    """
    words = ["0" if word.isdigit() else word for word in split_words(text)[:MAX_WORDS]]
    ends = ["^", *words, "$"]
    pairs = (f"{one} {two}" for one, two in pairwise(ends))
    marks = (mark for mark in MARKS if mark in text)
    return list(dict.fromkeys([*words, *pairs, *marks, f"# {len(words).bit_length()}"]))


def encoder_lesson(vectors: Matrix, personal: Sequence[bool]) -> Vector:
    """The lesson of an encoder's vectors of messages: weights and offset, (dimension + 1,)."""
    wanted = np.where(personal, 1.0, -1.0)
    rows = vectors.astype(np.float64)
    middle, offset = rows.mean(axis=0), float(wanted.mean())
    rows = rows - middle
    weights = np.linalg.solve(
        rows.T @ rows + ENCODER_RIDGE * np.eye(rows.shape[1]), rows.T @ (wanted - offset)
    )
    return np.append(weights, offset - middle @ weights).astype(np.float32)


def encoder_concern(lesson: Vector | None, message: Vector) -> float | None:
    """`Lesson.concern` by an encoder's vector of a message; None where the lesson has not been learnt, or not in its dimension."""
    if lesson is None or len(lesson) != len(message) + 1:
        return None
    return float(lesson[:-1] @ message + lesson[-1])
