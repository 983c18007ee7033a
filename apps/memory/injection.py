"""Automatic injection: which notes a chat turn brings up by itself, within a token budget, or none at all."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

BUDGET_TOKENS = 500
THRESHOLD = 0.45
RECENT_TEXTS = 3


@dataclass(frozen=True, slots=True)
class SurfacedNote:
    """A note as it was brought up: `score` is final = relevance x importance/3 x recency."""

    id: UUID
    text: str
    score: float
    relevance: float
    kind: str
    tags: list[str]
    importance: int
    trust: str
    created_at: datetime

    def to_json(self) -> dict[str, object]:
        """The entry of a `memory_context` event's `items`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Surfaced:
    """`text` is the block for the user turn, at most BUDGET_TOKENS estimated tokens; "" when nothing is relevant."""

    text: str
    tokens: int
    items: list[SurfacedNote]


def surface(
    user_id: UUID,
    recent_texts: Sequence[str],
    *,
    exclude_ids: Collection[UUID] = (),
    now: datetime | None = None,
) -> Surfaced:
    """The notes worth bringing up before answering.

    `recent_texts` are the conversation's newest messages, oldest first (the last three are the query);
    `exclude_ids` the notes this conversation has been shown. Counts the access of what it returns, so call
    it once per turn, inside `in_db`.
    """
    raise NotImplementedError
