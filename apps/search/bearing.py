"""Which documents bear on what is being said, unasked: absolute relevance that may be trusted to show nothing.

A ranking always has a best; whether the best is any good is another question. The cosine of a message with all the
documents is a bell of chance likeness, and what bears on it stands out. So relevance is how far a cosine exceeds the best
of as many that one would expect by chance, in standard deviations, sqrt(2 ln n) for n of them, less what a message with
little to say lacks, and more where the one who speaks speaks of their own affairs. That holds for any embedder and any
number of documents; of few, the embedder's calibration says what chance is. Some words in common add nothing to it that
the vectors do not know (measured); but a document that has nearly all the content words of the message bears on it anyway,
and in scripts that the bundled vectors cannot read words are all there is.

What is looked for is the gist of a message in its talk: its content words, how much they say, and what it takes from the talk
before. How much a word says everywhere, not in one user's few notes, is read off the bundled vectors: training has made those
of common words short and those of words that name a subject long (a 2, good 9, car 13, wedding 19, risotto 28).
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Any
from uuid import UUID

import numpy as np
from django.utils import timezone
from numpy.typing import NDArray

from apps.search.backends import Head
from apps.search.documents import Hit, Scope
from apps.search.embedders.base import QueryWeights, Vector
from apps.search.embedders.vocabulary import can_read, vectors_without_accidents, word_lengths
from apps.search.index.cache import index_open
from apps.search.index.rows import UserRows
from apps.search.ranking.query import languages_of
from apps.search.ranking.relevance import Found, Scale, best_places, hits_for
from apps.search.ranking.signals import allowed_rows
from apps.search.selectors import search
from apps.search.spaces import base_query
from apps.search.text.analysis import MAX_TERMS, split_words, stems, stop_words
from apps.search.text.talk import (
    ASKING_WORDS,
    CHATTER,
    GOING_ON_WORDS,
    OWN_WORDS,
    SOMEBODY_WORDS,
    SOMETHING_WORDS,
)
from apps.search.text.words import OTHER_WORDS, TIME_WORDS

Floats = NDArray[np.float32]

CANDIDATES = 100  # documents of highest cosine that are looked at
PRIOR = 20
"""The embedder's calibration counts like so many documents."""
SPREAD_SHARE = 0.1
"""The standard deviation of chance cosines, as a share of the way from noise to match."""
FARTHEST = 3.0
"""A cosine so many standard deviations above noise is no chance and counts as if it were no higher: where ten notes are
about one matter, each of them still stands out."""
MARGIN = 8
"""Chance is allowed so many documents more than there are: of two notes the better is no good for being better."""
OWN_BONUS = 1.0
VAGUE_LOSS = 3.0
"""Standard deviations: gained by "my" and "we", lost by a message that tells of nothing."""
HALF = 0.6  # standard deviations above chance that make a relevance of one half
SLOPE = 3.0
ALL_WORDS = 0.8
"""A document that shares so much of what a message tells is about it, by that share."""
GAP_SHARE = 0.25
"""Of what separates a document from the best so much is lost: beside a clear answer what is only near it is noise."""

MAX_CHARS = 2000
"""So much of a message counts: its beginning."""
EMPTY_LENGTH, FULL_LENGTH = 6.0, 18.0
"""The lengths of word vectors that say nothing and that say all they can."""
UNKNOWN = 0.6
"""Weight of a word where the bundled vectors are missing."""
TIME_SHARE = 0.2
"""A word for a time ("on Friday", "this morning") says so much of what it would otherwise: all kinds of things happen
then."""
REPLY_SHARE = 0.5
"""Maximum weight of what came right before, mostly the assistant's, as a share of what the user said earlier."""
VAGUE = 0.5
"""A question whose content words come to less than this leans on the talk, unless it names numbers or asks the
assistant about itself."""
STATED = 0.3
"""A statement needs so much of its own to lean on the talk: "thank them" asks for nothing."""


@dataclass(frozen=True, slots=True)
class Gist:
    """Text searched for in the talk's stead.

    `words` says how much each word of `text` counts each time it stands there, 0..1, and `content` how much it says beside; `substance` is the sum
    of that (1: one word that tells of a subject); `own`: the one who speaks speaks of their own affairs.
    """

    text: str = ""
    words: Mapping[str, float] = field(default_factory=dict)
    content: Mapping[str, float] = field(default_factory=dict)
    own: bool = False

    @property
    def substance(self) -> float:
        return sum(self.content.values())


@dataclass(frozen=True, slots=True)
class _Message:
    text: str
    words: list[str]
    content: dict[str, float]

    @property
    def substance(self) -> float:
        return sum(self.content.values())


def gist_of(talk: Sequence[str], languages: Collection[str]) -> Gist:
    """The gist of the newest of some messages (oldest first, three at most count), which are written in `languages`."""
    *before, newest = (_message(text, languages) for text in talk[-3:])
    lean = _leaning(newest, before)
    parts = [(newest, 1.0)]
    if lean:
        reply, share = before[-1], REPLY_SHARE
        if len(before) > 1:  # a long answer counts no more than what it answers
            parts.append((before[0], lean))
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
    own = any(not OWN_WORDS.isdisjoint(message.words) for message, share in parts if share >= 1)
    return Gist("\n".join(message.text for message, _ in reversed(parts)), words, content, own)


def _message(text: str, languages: Collection[str]) -> _Message:
    text = text[:MAX_CHARS]
    words = split_words(text)[:MAX_TERMS]
    silent = CHATTER.union(*map(stop_words, languages))
    content = [word for word in dict.fromkeys(words) if word not in silent and not word.isdigit()]
    lengths = word_lengths(content)
    if lengths is None:
        weights = dict.fromkeys(content, UNKNOWN)
    else:
        shares = ((length - EMPTY_LENGTH) / (FULL_LENGTH - EMPTY_LENGTH) for length in lengths.tolist())
        weights = {word: min(max(share, 0.0), 1.0) for word, share in zip(content, shares, strict=True)}
    for word in TIME_WORDS & weights.keys():
        weights[word] *= TIME_SHARE
    return _Message(text, words, weights)


def _leaning(newest: _Message, before: Sequence[_Message]) -> float:
    """How much of the talk before the newest message takes in: 0 nothing, 1 as if it had been said again."""
    if not before:
        return 0.0
    words = set(newest.words)
    names_somebody = not SOMEBODY_WORDS.isdisjoint(words)
    goes_on = newest.words[:1] and newest.words[0] in GOING_ON_WORDS
    refers = names_somebody or goes_on or not SOMETHING_WORDS.isdisjoint(words)
    if any(mark in newest.text for mark in "?？؟") or not ASKING_WORDS.isdisjoint(words):
        whole = any(word.isdigit() for word in words) or not OTHER_WORDS.isdisjoint(words)
        return 1.0 if refers or (newest.substance < VAGUE and not whole) else 0.0
    return 0.5 if names_somebody and newest.substance >= STATED else 0.0


@dataclass(frozen=True, slots=True)
class Chance:
    """Cosines that `number` documents have with a message by chance: a bell around `mean`."""

    mean: float
    deviation: float
    number: int
    best: float = 0.0

    def relevance(self, cosine: Floats, gist: Gist) -> Floats:
        """How far cosines are above the best that chance would give, as relevance."""
        expected = math.sqrt(2 * math.log(self.number + MARGIN))
        bonus = OWN_BONUS * gist.own - VAGUE_LOSS * (1 - min(gist.substance, 1.0))
        above = (cosine - self.mean) / self.deviation - expected + bonus - HALF
        above -= GAP_SHARE * (self.best - cosine) / self.deviation
        return np.asarray(1 / (1 + np.exp(-SLOPE * np.clip(above, -30, 30))), dtype=np.float32)


def chance_of(cosine: Floats, scale: Scale) -> Chance:
    """The bell of some cosines, of few of them as the embedder's calibration has it."""
    spread = SPREAD_SHARE * (scale.match - scale.noise)
    sample = np.minimum(cosine.astype(np.float64), scale.noise + FARTHEST * spread)
    weight = PRIOR + len(sample)
    mean = (PRIOR * scale.noise + float(sample.sum())) / weight
    variance = (PRIOR * spread**2 + float(((sample - mean) ** 2).sum())) / weight
    return Chance(mean, max(math.sqrt(variance), 1e-6), len(sample))


@dataclass(frozen=True, slots=True)
class _Question:
    """A message as it is looked for in one space."""

    gist: Gist
    vector: Vector
    head: Head


def bearing(
    user_id: UUID, talk: Sequence[str], *, top_k: int, scope: Scope, least: float = 0.0
) -> list[Hit]:
    """The documents that bear on the newest message of a talk, at most `top_k`, with a relevance of at least `least`.

    `talk` is oldest first; the last three messages count, the older two as far as the newest leans on them. The
    `score` of the hits is that relevance, 0..1: 0.45 separates "about this" from noise. It is the larger of the `parts`
    `meaning` and `words`, for which see above.
    """
    if not talk or not talk[-1].strip():
        return []
    with index_open(user_id) as opened:
        if opened is None or not opened[1].living:
            return []
        known, languages = opened[0], languages_of(talk[-1], opened[1])
    gist = gist_of(talk, languages)
    if not gist.words:
        return []
    vector = base_query(gist.text, QueryWeights(gist.words, 1.0))
    if vector is None:
        share = min(gist.substance, 1.0)
        said = search(user_id, talk[-1], top_k=top_k, scope=scope)
        hits = [replace(hit, **_weighed(0.0, hit.score * share)) for hit in said]
    else:
        chance, found = _found(user_id, _Question(gist, vector, known), scope, languages)
        hits = hits_for(user_id, [one for one in found if one.score >= least][:top_k])
        vectors = vectors_without_accidents([hit.text for hit in hits], gist.words)
        if vectors is not None:
            # None is nearer in meaning than it is without the pieces of words that it shares by accident.
            sober = chance.relevance(vectors @ vector, gist).tolist()
            hits = [
                replace(hit, **_weighed(min(hit.parts["meaning"], meaning), hit.parts["words"]))
                for hit, meaning in zip(hits, sober, strict=True)
            ]
    return sorted((hit for hit in hits if hit.score >= least), key=attrgetter("score"), reverse=True)


def _found(
    user_id: UUID, question: _Question, scope: Scope, languages: Sequence[str]
) -> tuple[Chance, list[Found]]:
    """Returns chance among the scope's documents, and the best that are not excluded, one passage of each."""
    nothing = Chance(0.0, 1.0, 0), list[Found]()
    with index_open(user_id) as opened:
        if opened is None:
            return nothing
        rows = opened[1]
        now = timezone.now()
        among = allowed_rows(rows, replace(scope, exclude_ids=()), now=now)
        allowed = allowed_rows(rows, scope, now=now)
        if not allowed.any():
            return nothing
        cosine = rows.cosines(question.vector)
        chance = chance_of(cosine[among & rows.embedded[: rows.size]], question.head.base)
        chance = replace(chance, best=float(cosine[allowed].max()))
        words = _words_shared(rows, question.gist, languages)
        if can_read(question.gist.words):
            meaning = chance.relevance(cosine, question.gist)
            words[words < ALL_WORDS] = 0
        else:
            meaning = np.zeros_like(words)
            words = np.sqrt(words)  # all there is to go by: every fifth word in common is an even bet
        words *= np.float32(min(question.gist.substance, 1.0))
        total = np.maximum(meaning, words)
        total[~allowed] = -np.inf
        places = best_places(total, rows, CANDIDATES)
        return chance, [
            Found(int(rows.ids[place]), **_weighed(float(meaning[place]), float(words[place])))
            for place in places
        ]


def _words_shared(rows: UserRows, gist: Gist, languages: Sequence[str]) -> Floats:
    """For each row the share, 0..1, of what the message tells that it says in the same words."""
    shared = np.zeros(rows.size, dtype=np.float32)
    total = gist.substance
    for word, says in gist.content.items():
        if not says:
            continue
        forms = dict.fromkeys(stem for language in languages for stem in stems([word], language))
        shared[np.unique(np.concatenate([rows.posted(form) for form in forms]))] += np.float32(
            says / total
        )
    return shared


def _weighed(meaning: float, words: float) -> dict[str, Any]:
    """The score of a find and the parts that it is made of."""
    parts = {"meaning": round(meaning, 4), "words": round(words, 4)}
    return {"score": round(max(meaning, words), 4), "parts": parts}
