"""The gist of a message in its talk: the words that tell something, and what it takes from the talk before.

How much a word says everywhere, not in one user's few notes, is read off the bundled vectors: training has made those
of common words short and those of words that name a subject long (a 2, good 9, car 13, wedding 19, risotto 28).
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from apps.search.embedders.vocabulary import word_lengths
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
VAGUE = 0.5
"""A question whose content words come to less than this leans on the talk, unless it names numbers or asks the
assistant about itself."""
STATED = 0.3
"""A statement needs so much of its own to lean on the talk: "thank them" asks for nothing."""
_CLAUSES = re.compile(
    r"(?<=[.!?;:\n])\s+|,\s+|\s+(?:and|but|so|because|und|aber|weil|et|mais|y|pero)\s+", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Gist:
    """Text searched for in the talk's stead, and the clauses of the newest message where that stands for itself.

    `words` says how much each word of `text` counts each time it stands there, 0..1, and `content` how much it says beside.
    `lean` is how much of the talk before it takes in, 0..1.
    """

    text: str = ""
    newest: str = ""
    words: Mapping[str, float] = field(default_factory=dict)
    content: Mapping[str, float] = field(default_factory=dict)
    lean: float = 0.0
    clauses: tuple[str, ...] = ()

    @property
    def queries(self) -> list[tuple[str, Mapping[str, float]]]:
        """Texts that are looked for: the whole, then each clause, with the weights of their words."""
        parts = [
            (each, {w: self.words[w] for w in split_words(each) if w in self.words})
            for each in self.clauses
        ]
        return [(self.text, self.words), *parts]


@dataclass(frozen=True, slots=True)
class _Message:
    text: str
    words: list[str]
    content: dict[str, float]

    @property
    def substance(self) -> float:
        """How much its content words say together; 1: one word that tells of a subject."""
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
    text = "\n".join(message.text for message, _ in reversed(parts))
    return Gist(text, newest.text, words, content, lean, () if lean else _clauses(newest))


def _clauses(message: _Message) -> tuple[str, ...]:
    """The clauses of a message that tell of something, where there are several."""
    parts = [part for part in _CLAUSES.split(message.text) if part.strip()]
    if len(parts) < 2:
        return ()
    telling = [
        part
        for part in parts
        if sum(message.content.get(word, 0.0) for word in set(split_words(part))) >= LEAST_CLAUSE
    ]
    return tuple(telling[:MAX_CLAUSES])


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
