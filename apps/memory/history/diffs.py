"""Differences of two texts, by words, ready to be shown."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Kind = Literal["same", "added", "removed"]

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n?")
MAX_COMPARED = 700
"""Of longer stretches of words the lines are compared; a stretch of more lines counts as replaced as a whole. Comparing
takes time by the square of its length."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of text that stands in both (`same`), only in the new (`added`) or only in the old (`removed`)."""

    kind: Kind
    text: str

    def to_json(self) -> dict[str, str]:
        return {"kind": self.kind, "text": self.text}


def text_diff(old: str, new: str) -> list[Piece]:
    """How `new` came from `old`: joined, the same and added pieces are `new`, the same and removed ones `old`.

    What both begin or end with is left out of the comparison, so an edit of a long text is shown word by word.
    """
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    middle = old[head : len(old) - tail], new[head : len(new) - tail]
    begins, ends = Piece("same", old[:head]), Piece("same", old[len(old) - tail :])
    return _joined([begins, *_compared(*_tokens(*middle)), ends])


def _shared(one: str, two: str) -> int:
    """How many characters two texts begin with in common, up to the end of a word."""
    low, high = 0, min(len(one), len(two))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if one[:middle] == two[:middle] else (low, middle - 1)
    return max(one.rfind(" ", 0, low), one.rfind("\n", 0, low)) + 1


def _tokens(old: str, new: str) -> tuple[list[str], list[str]]:
    """Splits texts into words, else lines, else leaves them whole."""
    for split in (_WORD, _LINE):
        before, after = (list(filter(None, split.findall(text))) for text in (old, new))
        if max(len(before), len(after)) <= MAX_COMPARED:
            return before, after
    return [old], [new]


def _compared(before: list[str], after: list[str]) -> list[Piece]:
    pieces: list[Piece] = []
    start = first = 0
    for end, last, size in _common(before, after):
        pieces.append(Piece("removed", "".join(before[start:end])))
        pieces.append(Piece("added", "".join(after[first:last])))
        pieces.append(Piece("same", "".join(before[end : end + size])))
        start, first = end + size, last + size
    return pieces


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Without empty pieces, and one for neighbours of a kind."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece.text and joined[-1].kind == piece.kind:
            joined[-1] = Piece(piece.kind, joined[-1].text + piece.text)
        elif piece.text:
            joined.append(piece)
    return joined


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
    """Whether a run begins or ends both."""
    begins = run[0] == run[1] == 0
    return begins or (run[0] + run[2] == len(before) and run[1] + run[2] == len(after))
