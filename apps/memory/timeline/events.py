"""Events of a user's notes: each was saved once, and every revision tells of a change."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.db.models import CharField, Count, F, IntegerField, Max, Min, Q, QuerySet, Value
from django.utils import timezone

from apps.memory.history.versions import CREATED
from apps.memory.models import KEEP_DELETED, Action, Memory, MemoryRevision, Status

GROUPS: dict[str, frozenset[str]] = {
    "saved": frozenset({CREATED}),
    "changed": frozenset({Action.UPDATED, Action.MERGED, Action.UNDONE, Action.ACCEPTED}),
    "replaced": frozenset({Action.SUPERSEDED}),
    "removed": frozenset({Action.ARCHIVED, Action.DELETED}),
    "restored": frozenset({Action.RESTORED}),
}
"""Filter value -> the actions it takes in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events: a key of GROUPS, a `Kind` of the note, an `Origin` of who did it; "" does not limit."""

    what: str = ""
    kind: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """One row: what (`created` or an `Action`) was done to a note by whom, when.

    `version` is 0 for the first saving, otherwise the number of the version that the change ended.
    """

    note_id: UUID
    at: datetime
    action: str
    actor: str
    version: int


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a user that fit a filter, as two queries that are read as one."""

    saved: QuerySet[Memory]
    changed: QuerySet[MemoryRevision]

    def within(self, first: date, last: date) -> "Events":
        """Those from the beginning of `first` to the end of `last`, in the reader's time zone."""
        span = Q(created_at__gte=begins(first), created_at__lt=begins(last + timedelta(days=1)))
        return Events(self.saved.filter(span), self.changed.filter(span))

    def count(self) -> int:
        return self.saved.count() + self.changed.count()

    def per_day(self, days: Collection[date]) -> dict[date, int]:
        """How many there are on each of these days."""
        totals: dict[date, int] = dict.fromkeys(days, 0)
        for rows in (self.saved, self.changed):
            counts = {f"d{day:%Y%m%d}": Count("pk", filter=_on(day)) for day in days}
            found = rows.order_by().aggregate(**counts)
            for day in days:
                totals[day] += found[f"d{day:%Y%m%d}"]
        return totals

    def latest(self, before: datetime | None = None) -> datetime | None:
        """When the last of them was, or the last before a time."""
        limit = Q(created_at__lt=before) if before else Q()
        return max(self._edges(limit, Max("created_at")), default=None)

    def earliest(self, after: datetime) -> datetime | None:
        """When the first of them from a time on was."""
        return min(self._edges(Q(created_at__gte=after), Min("created_at")), default=None)

    def _edges(self, limit: Q, which: Max | Min) -> list[datetime]:
        found = (rows.filter(limit).aggregate(edge=which)["edge"] for rows in (self.saved, self.changed))
        return [moment for moment in found if moment is not None]

    def __getitem__(self, part: slice) -> list[Event]:
        """A stretch of them, from the newest on."""
        rows = _columns(self.saved, "pk", Value(CREATED, CharField()), "origin", Value(0, IntegerField()))
        changes = _columns(self.changed, "memory_id", F("action"), "actor", F("version"))
        found = rows.union(changes, all=True).order_by("-on", "-number", "-note")
        return [Event(*row) for row in found[part]]


def events_of(user_id: UUID, wanted: EventFilter) -> Events:
    """The events of a user. A note that was deleted is part of it for as long as it can be restored."""
    since = timezone.now() - KEEP_DELETED
    saved = Memory.objects.with_deleted(user_id).exclude(status=Status.DELETED, deleted_at__lte=since)
    changed = MemoryRevision.objects.for_user(user_id).exclude(
        memory__status=Status.DELETED, memory__deleted_at__lte=since
    )
    if wanted.kind:
        saved, changed = saved.filter(kind=wanted.kind), changed.filter(memory__kind=wanted.kind)
    if wanted.source:
        saved, changed = saved.filter(origin=wanted.source), changed.filter(actor=wanted.source)
    if wanted.what:
        actions = GROUPS[wanted.what]
        saved = saved if CREATED in actions else saved.none()
        changed = changed.filter(action__in=actions)
    return Events(saved, changed)


def begins(day: date) -> datetime:
    """When a day begins where the reader is."""
    return timezone.make_aware(datetime.combine(day, time.min))


def _on(day: date) -> Q:
    return Q(created_at__gte=begins(day), created_at__lt=begins(day + timedelta(days=1)))


def _columns(rows: QuerySet[Any], note: str, action: Any, actor: str, number: Any) -> QuerySet[Any]:
    named = rows.order_by().annotate(note=F(note), on=F("created_at"), did=action, by=F(actor), number=number)
    listed: QuerySet[Any] = named.values_list("note", "on", "did", "by", "number")
    return listed
