"""Which of the found notes the user means: by the words they share, however inflected."""

import re
from dataclasses import dataclass
from functools import lru_cache

import snowballstemmer

from apps.agent.offline.wordlists import STOP

STEM_CHARS = 5


@dataclass(frozen=True, slots=True)
class Note:
    """A note as `memory_search` gave it."""

    note_id: str
    text: str
    score: float


def content_words(text: str) -> list[str]:
    """The words that carry meaning, in lower case, each once."""
    found = re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower().replace("’", "'"))
    kept = [
        word.removesuffix("'s") for word in found if word not in STOP and word.removesuffix("'s") not in STOP
    ]
    return list(dict.fromkeys(kept))


def best_matches(text: str, notes: list[Note]) -> list[Note]:
    """The notes that share most words with `text`, best first; several when they match equally well, none when no
    note shares a word."""
    wanted = content_words(text)
    shared = [(sum(_alike_any(word, content_words(note.text)) for word in wanted), note) for note in notes]
    most = max((count for count, _ in shared), default=0)
    return [note for count, note in shared if count == most and most > 0]


def sharing(text: str, notes: list[Note]) -> list[Note]:
    """Every note that shares a word with `text`."""
    wanted = content_words(text)
    return [note for note in notes if any(_alike_any(word, content_words(note.text)) for word in wanted)]


def _alike_any(word: str, others: list[str]) -> bool:
    return any(_alike(word, other) for other in others)


def _alike(one: str, other: str) -> bool:
    if one == other or _stem(one) == _stem(other):
        return True
    shorter, longer = sorted((one, other), key=len)
    if len(shorter) >= STEM_CHARS and longer.startswith(shorter[:-1]):
        return True
    return len(shorter) > STEM_CHARS and longer[: STEM_CHARS + 1] == shorter[: STEM_CHARS + 1]


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    stem: str = snowballstemmer.stemmer("english").stemWord(word)
    return stem
