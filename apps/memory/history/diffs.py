"""What differs between two texts, by words, ready to be shown."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Kind = Literal["same", "added", "removed"]

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n?")
MAX_WORDS = 2000
"""A text with more words is compared line by line."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text that stands in both (`same`), only in the new (`added`) or only in the old (`removed`)."""

    kind: Kind
    text: str

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "text": self.text}


def text_diff(old: str, new: str) -> list[Piece]:
    """How `new` came from `old`: joined, the same and added pieces are `new`, the same and removed ones `old`."""
    before, after = _tokens(old, new)
    pieces: list[Piece] = []
    start = first = 0
    for end, last, size in _common(before, after):
        if end > start:
            pieces.append(Piece("removed", "".join(before[start:end])))
        if last > first:
            pieces.append(Piece("added", "".join(after[first:last])))
        if size:
            pieces.append(Piece("same", "".join(before[end : end + size])))
        start, first = end + size, last + size
    return pieces


def _common(before: list[str], after: list[str]) -> list[tuple[int, int, int]]:
    """Runs of words that stand in both, as (place in the old, place in the new, length); the last has length 0.

    A run of nothing but space or signs between two changes is no help to a reader: it counts as changed.
    """
    blocks = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
    *runs, end = ((block.a, block.b, block.size) for block in blocks)
    kept = [
        run for run in runs if _tells(before[run[0] : run[0] + run[2]]) or _at_an_edge(run, before, after)
    ]
    return [*kept, end]


def _tells(tokens: list[str]) -> bool:
    return any(token[0].isalnum() for token in tokens)


def _at_an_edge(run: tuple[int, int, int], before: list[str], after: list[str]) -> bool:
    """Whether a run begins or ends both texts."""
    begins = run[0] == run[1] == 0
    return begins or (run[0] + run[2] == len(before) and run[1] + run[2] == len(after))


def _tokens(old: str, new: str) -> tuple[list[str], list[str]]:
    before, after = _WORD.findall(old), _WORD.findall(new)
    if max(len(before), len(after)) <= MAX_WORDS:
        return before, after
    return [line for line in _LINE.findall(old) if line], [line for line in _LINE.findall(new) if line]
