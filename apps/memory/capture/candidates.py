"""The notes near to what was said: what the extractor is shown, and what its items are compared with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from apps.memory.models import Memory, Status, Trust
from apps.memory.searching import NOTES
from apps.memory.selectors import memories_by_id
from apps.search.selectors import likenesses, search, similar

from .items import Item
from .said import Segment
from .similarity import Content, content_of

SHOWN_NOTES = 12
SEGMENTS_ASKED = 6
QUERY_CHARS = 2000
CANDIDATES = 6
PAST_NOTES = 300
"""The newest notes that are not active any more, or not yet, which an item is compared with."""
PAST_DAYS = timedelta(days=365)


@dataclass(slots=True)
class Nearby:
    """Candidates for an item: active notes with their calibrated similarity, and the items before it."""

    notes: list[tuple[UUID, float]] = field(default_factory=list)
    items: list[float] = field(default_factory=list)


def notes_for(user_id: UUID, segments: Sequence[Segment], shown: Sequence[UUID] = ()) -> list[Memory]:
    """The active notes that a window is most likely about, those that its conversation was shown first.

    However far away the nearest are: "we have a red Golf now" is what ends "drives a blue Skoda".
    """
    fresh = [segment for segment in segments if not segment.seen]
    own = sorted(fresh, key=lambda segment: segment.trust != Trust.USER)
    scores: dict[UUID, float] = {}
    for segment in own[:SEGMENTS_ASKED]:
        for note_id, value in similar(user_id, segment.text, top_k=CANDIDATES, scope=NOTES):
            scores[note_id] = max(scores.get(note_id, 0.0), value)
    query = "\n".join(segment.text for segment in own)[:QUERY_CHARS]
    for hit in search(user_id, query, top_k=SHOWN_NOTES, scope=NOTES):
        scores[hit.source_id] = max(scores.get(hit.source_id, 0.0), hit.score)
    for note_id in shown:
        scores[note_id] = max(scores.get(note_id, 0.0), 1.0)
    best = sorted(scores, key=lambda note: -scores[note])
    notes = memories_by_id(user_id, best)
    active = [notes[key] for key in best if key in notes and notes[key].status == Status.ACTIVE]
    return active[:SHOWN_NOTES]


def nearby(user_id: UUID, items: Sequence[Item]) -> list[Nearby]:
    """For each item what it has to be compared with. Asks the embedder: call it outside of a transaction."""
    among = likenesses([item.content for item in items])
    return [
        Nearby(near_notes(user_id, item.content), among[place, :place].tolist())
        for place, item in enumerate(items)
    ]


def near_notes(user_id: UUID, content: str) -> list[tuple[UUID, float]]:
    """Active notes with their calibrated similarity, most alike first: by meaning and by words, so that a dead embedder
    does not make everything look new."""
    if not content:
        return []
    found = dict(similar(user_id, content, top_k=CANDIDATES, scope=NOTES))
    for hit in search(user_id, content, top_k=CANDIDATES, scope=NOTES):
        found.setdefault(hit.source_id, 0.0)
    return sorted(found.items(), key=lambda pair: -pair[1])


@dataclass(frozen=True, slots=True)
class Past:
    """A note that search does not find, but that says what Izzy was told before: it waits, or was superseded, put away
    or deleted at `ended`."""

    id: UUID
    status: str
    trust: str
    ended: datetime
    superseded_by: UUID | None
    content: Content


def past_notes(user_id: UUID) -> list[Past]:
    """The newest PAST_NOTES of them."""
    rows = Memory.objects.with_deleted(user_id).exclude(status=Status.ACTIVE)
    recent = rows.filter(Q(updated_at__gte=timezone.now() - PAST_DAYS) | Q(status=Status.PENDING))
    return [
        Past(
            note.pk,
            note.status,
            note.trust,
            note.deleted_at or note.valid_to or note.updated_at,
            note.superseded_by_id,
            content_of(note.content),
        )
        for note in recent.order_by("-updated_at")[:PAST_NOTES]
    ]


def shown_texts(user_id: UUID, shown: Sequence[tuple[str | None, str]]) -> list[Content]:
    """Texts Izzy put beside the conversation, as shown and as those notes read now, deleted ones too."""
    ids = [key for key, _ in shown if key]
    notes = Memory.objects.with_deleted(user_id).filter(pk__in=ids).values_list("content", flat=True)
    return [content_of(text) for text in dict.fromkeys([*(text for _, text in shown), *notes])]
