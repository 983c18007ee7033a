"""The searches of deep memory and what becomes of their results. Synchronous."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.utils import timezone

from apps.memory.models import Memory, Status
from apps.memory.searching import notes_search
from apps.memory.selectors import NoteFilter, memory_matching, related_notes
from apps.memory.services import access_record

from .angles import Angle

PER_SEARCH = 5
MAX_FOUND = 10
LEAST_RELEVANCE = 0.015
"""The one score of a note that shares nothing with the words looked for is about 0.005, that of a distant relative 0.02 and more."""
LEAST_LINKED = 0.05
"""Linked notes need more: their score does not measure the words."""
TAG_DOUBT = 0.5
CONTENT_DOUBT = 0.6
"""How likely a note is beside the point although a tag, or its text, contains one keyword."""
START_NOTES = 3
LINKED_NOTES = 5
LINK_SHARE = 0.8
"""How much of a note's relevance a link of weight 1 hands on."""
MIN_LETTERS = 4
"""A shorter ASCII word is looked for as a word, not inside others ("eat" is in "great")."""


@dataclass(frozen=True, slots=True)
class Found:
    """A note with how relevant it is to the question (0..1); `via` is the note whose link led to it."""

    note: Memory
    relevance: float
    via: UUID | None = None

    @property
    def rank(self) -> float:
        """Order of the results: present priority plus relevance."""
        return self.note.present + self.relevance


def angle_search(user_id: UUID, angle: Angle) -> list[Found]:
    """The five most relevant notes for one keyword set: by meaning and words, and by the keyword score over tags and
    content.

    Faded notes are among them; what neither finds relevant is left out.
    """
    found: dict[UUID, Found] = {}
    for hit, note in notes_search(user_id, " ".join(angle.words), wanted=NoteFilter(), top_k=2 * PER_SEARCH):
        found[note.pk] = Found(note, hit.score)
    inside = [word for word in angle.words if len(word) >= MIN_LETTERS or not word.isascii()]
    for item in memory_matching(user_id, inside, limit=2 * PER_SEARCH) if inside else []:
        known = found.get(item.note.pk)
        doubt = 1 - known.relevance if known else 1.0
        missed = doubt * TAG_DOUBT**item.tag_hits * CONTENT_DOUBT**item.content_hits
        found[item.note.pk] = Found(item.note, 1 - missed)
    weighed = [replace(one, relevance=one.relevance * angle.weight) for one in found.values()]
    relevant = [one for one in weighed if one.relevance >= LEAST_RELEVANCE]
    return sorted(relevant, key=lambda one: (-one.relevance, -one.rank, str(one.note.pk)))[:PER_SEARCH]


def gathered(user_id: UUID, searches: Iterable[Sequence[Found]]) -> list[Found]:
    """The notes of all searches, each once, with what the best are linked with; at most ten. Records the access."""
    best = _best(found for search in searches for found in search)
    linked = [near for start in best[:START_NOTES] for near in _linked(user_id, start)]
    kept = _best([*best, *linked])[:MAX_FOUND]
    access_record(user_id=user_id, memory_ids=[found.note.pk for found in kept])
    return kept


def _linked(user_id: UUID, start: Found) -> list[Found]:
    """The valid, active notes one link away."""
    now = timezone.now()
    near = related_notes(user_id, start.note.pk, depth=1, limit=LINKED_NOTES, statuses=(Status.ACTIVE,))
    handed = start.relevance * LINK_SHARE
    found = [Found(one.note, handed * one.weight, via=start.note.pk) for one in near if _valid(one.note, now)]
    return [one for one in found if one.relevance >= LEAST_LINKED]


def _valid(note: Memory, now: datetime) -> bool:
    begun = note.valid_from is None or note.valid_from <= now
    return begun and (note.valid_to is None or now < note.valid_to)


def _best(found: Iterable[Found]) -> list[Found]:
    """Each note once, where it is most relevant, highest rank first."""
    best: dict[UUID, Found] = {}
    for one in found:
        known = best.get(one.note.pk)
        if known is None or one.relevance > known.relevance:
            best[one.note.pk] = one
    return sorted(best.values(), key=lambda one: (-one.rank, -one.relevance, str(one.note.pk)))
