"""What differs between two texts, by words, ready to be shown."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Kind = Literal["same", "added", "removed"]

_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_LINE = re.compile(r"[^\n]*\n?")
MAX_COMPARED = 2000
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
    for split in (_WORD, _LINE):
        before, after = (list(filter(None, split.findall(text))) for text in (old, new))
        head = _alike(before, after)
        tail = _alike(before[head:][::-1], after[head:][::-1])
        middle = before[head : len(before) - tail], after[head : len(after) - tail]
        if max(map(len, middle)) <= MAX_COMPARED:
            break
    else:
        middle = ["".join(middle[0])], ["".join(middle[1])]
    ends = "".join(before[:head]), "".join(before[len(before) - tail :])
    return _joined([Piece("same", ends[0]), *_compared(*middle), Piece("same", ends[1])])


def _alike(one: list[str], two: list[str]) -> int:
    """How many tokens two texts have in common at their beginning."""
    return next(
        (place for place, (first, second) in enumerate(zip(one, two, strict=False)) if first != second),
        min(len(one), len(two)),
    )


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
    return [*(run for run in runs if _tells(before[run[0] : run[0] + run[2]])), end]


def _tells(tokens: list[str]) -> bool:
    return any(token[0].isalnum() for token in tokens)
