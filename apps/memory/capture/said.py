"""Messages as chat hands them over, and the numbered pieces that a window holds."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core.beforehand import once
from apps.core.quotes import own_words, split_quotes
from apps.core.text import chunk_text, estimate_tokens
from apps.memory.models import Trust
from apps.memory.trust.sentences import spoken

SEGMENT_TOKENS = 100
"""A message is cut into pieces of at most so many tokens: what the model cites, and what two windows share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
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


def segments_of(said: Said) -> list[Segment]:
    """The pieces of a message in their order; what it quotes is untrusted whoever quotes it."""
    return [
        Segment(
            message=said.message_id,
            role=said.role,
            speaker=said.speaker,
            trust=Trust.UNTRUSTED if quoted else said.trust,
            quoted=quoted,
            seen=False,
            said_at=said.said_at,
            tokens=tokens,
            text=piece,
            whole=whole,
        )
        for piece, tokens, quoted, whole in once(pieces_of, said.text, said.role == "user")
    ]


def pieces_of(text: str, by_user: bool) -> list[tuple[str, int, bool, bool]]:
    """(piece, its tokens, whether it is quoted, whether it is whole) in their order. Takes a while for a long text."""
    parts = once(split_quotes, text, by_user)
    said = spoken(own_words(text)) if by_user else frozenset()
    return [
        (piece, estimate_tokens(piece), quoted, by_user and not quoted and spoken(piece) <= said)
        for part, quoted in parts
        for piece in chunk_text(part, size=SEGMENT_TOKENS, overlap=0)
    ]
