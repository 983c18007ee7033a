"""Texts that notes had at another time, by the versions of them that are kept."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from uuid import UUID

from django.db.models import F, Q

from apps.memory.models import Memory, MemoryRevision

from .history import Span, spans_of


def texts_at(user_id: UUID, memory_ids: Sequence[UUID], moment: datetime) -> dict[UUID, str]:
    """The text that those of the notes had at a moment whose text was changed since."""
    texts: dict[UUID, str] = {}
    for note, (*former, _) in _spans(user_id, memory_ids):
        for span in former:
            if span.end and span.start <= moment < span.end:
                texts[note.pk] = span.text
    return texts


def texts_held(user_id: UUID, moment: datetime) -> dict[UUID, str]:
    """By note whose text is not, or may not be, that of a moment: the text that held then; "" where none did."""
    rows = MemoryRevision.objects.for_user(user_id).exclude(content=F("memory__content"))
    changed = rows.filter(Q(created_at__gt=moment) | Q(memory__valid_from__gt=moment))
    texts: dict[UUID, str] = {}
    for note, spans in _spans(user_id, changed.values_list("memory_id", flat=True)):
        texts[note.pk] = ""
        for span in spans:
            end = span.end or note.valid_to
            if span.shown and span.start <= moment and (end is None or moment < end):
                texts[note.pk] = span.text
    return texts


def _spans(user_id: UUID, memory_ids: Iterable[UUID]) -> Iterator[tuple[Memory, list[Span]]]:
    """Those of the notes that were changed, with the texts that they have had; the ids may be a query."""
    kept = MemoryRevision.objects.owned_by(user_id).filter(memory_id__in=memory_ids).order_by("version")
    revisions: dict[UUID, list[MemoryRevision]] = {}
    for row in kept:
        revisions.setdefault(row.memory_id, []).append(row)
    for note in Memory.objects.owned_by(user_id).filter(pk__among=list(revisions)):
        yield note, spans_of(note, revisions[note.pk])
