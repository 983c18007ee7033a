"""Messages as chat hands them over, the numbered pieces that a window holds, and how they are cut into windows."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core.db.writing import once
from apps.core.quotes import own_words, split_quotes
from apps.core.text import chunk_text, estimate_tokens
from apps.memory.models import Trust
from apps.memory.trust import spoken

WINDOW_TOKENS = 500
OVERLAP_TOKENS = 100
SEGMENT_TOKENS = 100
"""A message is cut into pieces of at most so many tokens: what the model cites, and what two windows share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Utterance:
    """One message: `text` is what people read of it, never tool output, system text or notes that Izzy put beside it.

    `role` is user or assistant, `speaker` the name shown, `trust` how far the speaker's own words are trusted (quoted
    parts of them are found here). `shown` are the notes put beside the turn, as (note id or None, text).
    """

    message_id: UUID
    role: str
    speaker: str
    text: str
    said_at: datetime
    position: int = 0
    trust: Trust = Trust.USER
    shown: Sequence[tuple[UUID | None, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A piece of a message. `seen`: it stands in the window before too; `quoted`: the speaker repeats others' words."""

    message: UUID
    role: str
    speaker: str
    trust: Trust
    quoted: bool
    seen: bool
    said_at: datetime
    tokens: int
    text: str
    whole: bool = False  # of the speaker's own words, and every sentence in it begins and ends there

    def to_json(self) -> dict[str, Any]:
        plain = {"message": str(self.message), "trust": str(self.trust), "said_at": self.said_at.isoformat()}
        return asdict(self) | plain

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> "Segment":
        message, said_at = UUID(value["message"]), datetime.fromisoformat(value["said_at"])
        return cls(**(value | {"message": message, "trust": Trust(value["trust"]), "said_at": said_at}))


def segments_of(message: Utterance) -> list[Segment]:
    """The pieces of a message in their order; what it quotes is untrusted whoever quotes it."""
    return [
        Segment(
            message=message.message_id,
            role=message.role,
            speaker=message.speaker,
            trust=Trust.UNTRUSTED if quoted else message.trust,
            quoted=quoted,
            seen=False,
            said_at=message.said_at,
            tokens=tokens,
            text=piece,
            whole=whole,
        )
        for piece, tokens, quoted, whole in once(pieces_of, message.text, message.role == "user")
    ]


def pieces_of(text: str, by_user: bool) -> list[tuple[str, int, bool, bool]]:
    """(piece, its tokens, whether it is quoted, whether it is whole) in their order. Takes a while for a long text."""
    parts = once(split_quotes, text, by_user)
    own = spoken(own_words(text)) if by_user else frozenset()
    return [
        (piece, estimate_tokens(piece), quoted, by_user and not quoted and spoken(piece) <= own)
        for part, quoted in parts
        for piece in chunk_text(part, size=SEGMENT_TOKENS, overlap=0)
    ]


def cut(start: Sequence[Segment], fresh: Iterable[Segment]) -> list[list[Segment]]:
    """The segments of windows that go on from `start` (those of one still open, or an overlap) with what is new.

    All but the last are full. Each but the first begins with the end of the one before, marked as seen.
    """
    windows = [list(start)]
    for segment in fresh:
        last = windows[-1]
        tokens = sum(one.tokens for one in last) + segment.tokens
        if tokens > WINDOW_TOKENS and has_fresh(last):
            last = overlap(last)
            windows.append(last)
        last.append(segment)
    return [window for window in windows if has_fresh(window)]


def has_fresh(segments: Iterable[Segment]) -> bool:
    """Whether any of them stands in no window before."""
    return any(not segment.seen for segment in segments)


def overlap(segments: Sequence[Segment]) -> list[Segment]:
    """The last segments of about OVERLAP_TOKENS together, as the next window shows them again."""
    kept: list[Segment] = []
    total = 0
    for segment in reversed(segments):
        total += segment.tokens
        if total > OVERLAP_TOKENS and kept:
            break
        kept.append(replace(segment, seen=True))
    return kept[::-1]
