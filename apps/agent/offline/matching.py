"""Which of the found notes the user means: by the words they share, however inflected."""

import re
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

from apps.agent.offline.wordlists import STOP

PREFIX_CHARS = 6
MAX_WORDS = 500


@dataclass(frozen=True, slots=True)
class Note:
    """A note as `memory_search` gave it."""

    note_id: str
    text: str
    score: float
    excerpt: bool = False  # a part of a longer text


def content_words(text: str) -> list[str]:
    """The words that carry meaning, in lower case, each once, at most 500."""
    found = re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower().replace("’", "'"))
    kept = [
        word.removesuffix("'s") for word in found if word not in STOP and word.removesuffix("'s") not in STOP
    ]
    return list(dict.fromkeys(kept))[:MAX_WORDS]


def best_matches(text: str, notes: list[Note]) -> list[Note]:
    """The notes that share most words with `text`, best first; several when they match equally well, none when no
    note shares a word."""
    wanted = _keys(text)
    shared = [(_shared(wanted, note.text), note) for note in notes]
    most = max((count for count, _ in shared), default=0)
    return [note for count, note in shared if count == most and most > 0]


def sharing(text: str, notes: list[Note]) -> list[Note]:
    """Every note that shares a word with `text`."""
    wanted = _keys(text)
    return [note for note in notes if _shared(wanted, note.text)]


def _shared(wanted: list[frozenset[str]], text: str) -> int:
    present = frozenset().union(*_keys(text))
    return sum(not present.isdisjoint(keys) for keys in wanted)


def _keys(text: str) -> list[frozenset[str]]:
    """For each word what it is known by: its stem and, where it is long, its beginning (allergy, allergic)."""
    return [
        frozenset({_stem(word), word[:PREFIX_CHARS]} if len(word) >= PREFIX_CHARS else {_stem(word)})
        for word in content_words(text)
    ]


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    stem: str = snowballstemmer.stemmer("english").stemWord(word)
    return stem
