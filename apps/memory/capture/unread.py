"""The user's messages in other conversations, not yet read for notes: until then they are found as they were said."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Q

from apps.memory.models import CaptureWindow, Trust, WindowState
from apps.search.bearing import bearing
from apps.search.documents import Hit, Scope, Source

from .said import Segment

NEWEST_WINDOWS = 20


@dataclass(frozen=True, slots=True)
class SurfacedWords:
    """A message of another conversation that is brought up; `text` is as much of it as there is room for."""

    hit: Hit
    text: str

    @property
    def id(self) -> UUID:
        return self.hit.source_id

    @property
    def score(self) -> float:
        return self.hit.score

    @property
    def label(self) -> str:
        return f"said by the user in another conversation, {self.hit.happened_at:%Y-%m-%d}"

    def to_json(self) -> dict[str, object]:
        """The entry of a `memory_context` event's `items`; `id` is that of the message."""
        return {
            "id": str(self.hit.source_id),
            "source": str(Source.CONVERSATION),
            "conversation": str(self.hit.conversation_id),
            "text": self.text,
            "score": round(self.score, 3),
            "created_at": self.hit.happened_at.isoformat(),
        }


def unread_scope(
    user_id: UUID, *, other_than: UUID | None, exclude_ids: Collection[UUID] = ()
) -> Scope | None:
    """Limits a search to the user's own messages in the newest windows that nobody has read, of all conversations but one;
    None where there are none. A message that quotes others is left out."""
    rows = CaptureWindow.objects.for_user(user_id).filter(
        state__in=[WindowState.WAITING, WindowState.GAVE_UP]
    )
    rows = rows.filter(~Q(conversation_id=other_than)) if other_than else rows
    found = rows.order_by("-id").values_list("segments", flat=True)[:NEWEST_WINDOWS]
    segments = [Segment.from_json(value) for values in found for value in values]
    others = {one.message for one in segments if one.trust != Trust.USER}
    own = {one.message for one in segments if not one.seen} - others
    sources = frozenset({Source.CONVERSATION})
    return Scope(sources=sources, only_ids=own, exclude_ids=exclude_ids) if own else None


def unread_hits(
    user_id: UUID, talk: Sequence[str], *, other_than: UUID, exclude_ids: Collection[UUID], least: float
) -> list[Hit]:
    """Those of the messages that matter to the newest of `talk`, best first, with at least that relevance."""
    scope = unread_scope(user_id, other_than=other_than, exclude_ids=exclude_ids)
    return bearing(user_id, talk, top_k=NEWEST_WINDOWS, scope=scope, least=least) if scope else []
