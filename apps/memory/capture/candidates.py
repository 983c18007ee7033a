"""Candidates that the items of a window are compared with: near notes, notes that ended, and what Izzy itself showed."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TypeAlias
from uuid import UUID

from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.core.ids import parse_id
from apps.memory.models import Memory, Status, Trust
from apps.memory.notes.selectors import memories_by_id
from apps.memory.similarity import (
    CANDIDATES,
    NOTES,
    Content,
    adds_nothing,
    content_of,
    same_content,
    says_the_same,
)
from apps.memory.trust import least_trust
from apps.search.selectors import search, similar_each

from .items import Action, Item
from .leases import LeasedWindow

SHOWN_NOTES = 12
SEGMENTS_ASKED = 6
QUERY_CHARS = 2000
PAST_NOTES = 300
"""The newest notes that are not active any more, or not yet, which an item is compared with."""
PAST_DAYS = timedelta(days=365)
Alike: TypeAlias = Sequence[tuple[UUID, float]]  # active notes with their calibrated similarity


def notes_for(window: LeasedWindow) -> list[Memory]:
    """The active notes that a window is most likely about, those that its conversation was shown first.

    However far away the nearest are: "we have a red Golf now" is what ends "drives a blue Skoda".
    """
    user_id = window.user_id
    fresh = [segment for segment in window.segments if not segment.seen]
    own = sorted(fresh, key=lambda segment: segment.trust != Trust.USER)
    found: list[tuple[UUID, float]] = []
    texts = [segment.text for segment in own[:SEGMENTS_ASKED]]
    for near in similar_each(user_id, texts, top_k=CANDIDATES, scope=NOTES):
        found += near
    query = "\n".join(segment.text for segment in own)[:QUERY_CHARS]
    found += [
        (hit.source_id, hit.score) for hit in search(user_id, query, top_k=SHOWN_NOTES, scope=NOTES)
    ]
    found += [(parse_id(key), 1.0) for key, _ in window.shown if key]
    scores: dict[UUID, float] = {}
    for note_id, score in found:
        scores[note_id] = max(scores.get(note_id, 0.0), score)
    best = sorted(scores, key=lambda note: -scores[note])
    notes = memories_by_id(user_id, best)
    active = [notes[key] for key in best if key in notes and notes[key].status == Status.ACTIVE]
    return active[:SHOWN_NOTES]


@dataclass(slots=True)
class Known:
    """Holds what the items of one window are compared with beside the notes near to each."""

    user_id: UUID
    past: list[
        tuple[Memory, Content]
    ]  # notes that are not active any more, or not yet: search does not find them
    shown: list[Content]  # what Izzy put beside the conversation, as shown and as those notes read now
    written: dict[int, Memory] = field(
        default_factory=dict
    )  # notes that items before gave rise to, by place

    @classmethod
    def of(cls, window: LeasedWindow) -> "Known":
        notes = Memory.objects.with_deleted(window.user_id)
        recent = Q(updated_at__gte=timezone.now() - PAST_DAYS) | Q(status=Status.PENDING)
        past = notes.exclude(status=Status.ACTIVE).filter(recent).order_by("-updated_at")[:PAST_NOTES]
        ids = [key for key, _ in window.shown if key]
        texts = [
            *(text for _, text in window.shown),
            *notes.filter(pk__in=ids).values_list("content", flat=True),
        ]
        return cls(
            window.user_id,
            [(note, content_of(note.content)) for note in past],
            [content_of(text) for text in dict.fromkeys(texts)],
        )

    def was_shown(self, item: Item) -> bool:
        """Whether Izzy itself put these words beside the conversation: hearing them again is no news."""
        words = content_of(item.content)
        return any(same_content(words, text) for text in self.shown)

    def same_as(
        self, item: Item, near: Alike, among: Sequence[float], *, target: Memory | None, trust: Trust
    ) -> Memory | None:
        """The active note that says the same already, or one that an item before gave rise to."""
        for place, value in enumerate(among):
            note = self.written.get(place)
            if note is None or note == target or not says_the_same(item.content, note.content, value):
                continue
            kept = self._living().filter(pk=note.pk).first()
            if kept and not (kept.status == Status.PENDING and _outranks(trust, kept.trust)):
                return kept
        active = self._living().filter(pk__in=[key for key, _ in near], status=Status.ACTIVE)
        by_id = {note.pk: note for note in active}
        for key, value in near:
            found = by_id.get(key)
            if found is None:
                continue
            # Of the note that an item means to change, only its words can say that there is nothing to change.
            is_target = found == target
            if (
                adds_nothing(item.content, found.content)
                if is_target
                else says_the_same(item.content, found.content, value)
            ):
                return found
        return None

    def past_reason(self, item: Item, trust: Trust, said_at: datetime) -> str | None:
        """Why an item that says what a note said that is not active must not come back; None where it may.

        A note that waits is not proposed again, unless the words are trusted more by now. What was superseded, put
        away or deleted comes back only when it is said anew afterwards by the user, and a superseded text only where
        the model says what it replaces.
        """
        words = content_of(item.content)
        for note, content in self.past:
            if not same_content(words, content):
                continue
            replaced_at = note.valid_to if note.status == Status.SUPERSEDED else None
            ended = note.deleted_at or replaced_at or note.updated_at
            if note.status == Status.PENDING:
                if not _outranks(trust, note.trust):
                    return "waits_for_review"
            elif said_at <= ended or trust == Trust.UNTRUSTED:
                return f"was_{note.status}"
            elif note.status == Status.SUPERSEDED and item.action == Action.ADD:
                successor = self._living().filter(supersedes=note, status=Status.ACTIVE)
                if successor.exists():
                    return "was_superseded"
        return None

    def _living(self) -> QuerySet[Memory]:
        return Memory.objects.owned_by(self.user_id).filter(status__in=[Status.ACTIVE, Status.PENDING])


def _outranks(trust: Trust, other: Trust | str) -> bool:
    """Whether words are trusted more than others."""
    return trust != Trust(other) and least_trust(trust, other) == Trust(other)
