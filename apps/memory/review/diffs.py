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
    for tag, start, end, first, last in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if tag == "equal":
            _add(pieces, "same", before[start:end])
        else:
            _add(pieces, "removed", before[start:end])
            _add(pieces, "added", after[first:last])
    return pieces


def _tokens(old: str, new: str) -> tuple[list[str], list[str]]:
    before, after = _WORD.findall(old), _WORD.findall(new)
    if max(len(before), len(after)) <= MAX_WORDS:
        return before, after
    return [line for line in _LINE.findall(old) if line], [line for line in _LINE.findall(new) if line]


def _add(pieces: list[Piece], kind: Kind, tokens: list[str]) -> None:
    if tokens:
        pieces.append(Piece(kind, "".join(tokens)))
