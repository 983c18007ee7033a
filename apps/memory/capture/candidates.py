"""What the items of a window are compared with: near notes, notes that ended, and what Izzy itself showed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.memory.models import Memory, Status, Trust
from apps.memory.selectors import memories_by_id
from apps.memory.similarity import (
    CANDIDATES,
    NOTES,
    Content,
    adds_to,
    content_of,
    near_notes,
    same_content,
    same_words,
    says_the_same,
)
from apps.memory.trust import least_trust
from apps.search.selectors import likenesses, search, similar

from .items import Action, Item
from .segments import Segment

SHOWN_NOTES = 12
SEGMENTS_ASKED = 6
QUERY_CHARS = 2000
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


@dataclass(slots=True)
class Known:
    """Compares the items of one window with what is known already."""

    user_id: UUID
    past: Sequence[Past]
    shown: Sequence[Content]
    written: dict[int, Memory] = field(default_factory=dict)  # notes that items before gave rise to, by place

    def was_shown(self, item: Item) -> bool:
        """Whether Izzy itself put these words beside the conversation: hearing them again is no news."""
        words = content_of(item.content)
        return any(same_content(words, text) for text in self.shown)

    def same_as(self, item: Item, around: Nearby, *, target: Memory | None, trust: Trust) -> Memory | None:
        """The active note that says the same already, or one that an item before gave rise to."""
        for place, value in enumerate(around.items):
            note = self.written.get(place)
            if note is None or note == target or not says_the_same(item.content, note.content, value):
                continue
            kept = self._living().filter(pk=note.pk).first()
            if kept and not (kept.status == Status.PENDING and _outranks(trust, kept.trust)):
                return kept
        near = self._living().filter(pk__in=[key for key, _ in around.notes], status=Status.ACTIVE)
        by_id = {note.pk: note for note in near}
        for key, value in around.notes:
            found = by_id.get(key)
            if found is not None and _says(found, item, value, is_target=found == target):
                return found
        return None

    def past_reason(self, item: Item, trust: Trust, said_at: datetime) -> str | None:
        """Why an item that says what a note said that is not active must not come back; None where it may.

        A note that waits is not proposed again, unless the words are trusted more by now. What was superseded, put
        away or deleted comes back only when it is said anew afterwards by the user, and a superseded text only where
        the model says what it replaces.
        """
        words = content_of(item.content)
        for note in self.past:
            if not same_content(words, note.content):
                continue
            if note.status == Status.PENDING:
                if not _outranks(trust, note.trust):
                    return "waits_for_review"
            elif said_at <= note.ended or trust == Trust.UNTRUSTED:
                return f"was_{note.status}"
            elif (
                note.status == Status.SUPERSEDED and item.action == Action.ADD and self._successor_holds(note)
            ):
                return "was_superseded"
        return None

    def _successor_holds(self, note: Past) -> bool:
        if note.superseded_by is None:
            return False
        return self._living().filter(pk=note.superseded_by, status=Status.ACTIVE).exists()

    def _living(self) -> QuerySet[Memory]:
        return Memory.objects.owned_by(self.user_id).filter(status__in=[Status.ACTIVE, Status.PENDING])


def _says(note: Memory, item: Item, value: float, *, is_target: bool) -> bool:
    """Of the note that an item means to change, only its words can say that there is nothing to change."""
    if is_target:
        return same_words(item.content, note.content) and not adds_to(item.content, note.content)
    return says_the_same(item.content, note.content, value)


def _outranks(trust: Trust, other: Trust | str) -> bool:
    """Whether words are trusted more than others."""
    return trust != Trust(other) and least_trust(trust, other) == Trust(other)
