"""Single notes, and what their priority is by now."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from django.db import connection
from django.db.models import F, FloatField, QuerySet, Value
from django.db.models.functions import Cast, Greatest

from apps.core.errors import NotFound
from apps.memory.fields import STANDING
from apps.memory.models import Memory, Status, Trust


def current_cycle(user_id: UUID) -> int:
    """How many chat turns the user has had."""
    key = Memory._meta.pk.get_db_prep_value(user_id, connection)
    with connection.cursor() as cursor:  # every save asks for it, and the ORM takes ten times as long
        cursor.execute("SELECT cycle FROM memory_decaycycle WHERE user_id = %s", [key])
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def present_priority(cycle: int) -> Greatest:
    """SQL for the priority at a cycle: max(0, priority - decay_rate x (cycle - cycle it was written at))."""
    passed = Cast(Value(cycle) - F("priority_cycle"), FloatField())
    return Greatest(Value(0.0), F("priority") - F("decay_rate") * passed, output_field=FloatField())


def with_present_priority(user_id: UUID, notes: QuerySet[Memory]) -> QuerySet[Memory]:
    """The notes, each with the priority it has now as `priority_now` (read it as `present`)."""
    return notes.annotate(priority_now=present_priority(current_cycle(user_id)))


def memory_get(user_id: UUID, memory_id: UUID, *, lock: bool = False) -> Memory:
    """The note; unless locked for a change with `present`.

    Raises NotFound for an id that is unknown, deleted or somebody else's.
    """
    notes = Memory.objects.owned_by(user_id).filter(pk=memory_id)
    note = (notes.select_for_update() if lock else with_present_priority(user_id, notes)).first()
    if note is None:
        raise NotFound("There is no note with this id.")
    return note


def standing_notes(user_id: UUID, *, now: datetime, limit: int) -> list[Memory]:
    """The user's active notes of the category STANDING that hold now, most important and newest first, each with
    `present`; none that repeats what others said."""
    notes = Memory.objects.for_user(user_id).filter(category=STANDING, status=Status.ACTIVE)
    notes = with_present_priority(user_id, notes)
    held = [
        note
        for note in notes.order_by("-importance", "-created_at", "-pk")
        if note.trust != Trust.UNTRUSTED
        and (note.valid_from is None or note.valid_from <= now)
        and (note.valid_to is None or note.valid_to > now)
    ]
    return held[:limit]


def memories_by_id(user_id: UUID, memory_ids: Collection[UUID]) -> dict[UUID, Memory]:
    """The user's notes among these ids, each with `present`."""
    notes = with_present_priority(user_id, Memory.objects.owned_by(user_id).filter(pk__in=memory_ids))
    return {note.pk: note for note in notes}
