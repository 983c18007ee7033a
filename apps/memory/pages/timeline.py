"""The timeline: a month of what happened, or of what was learned and changed, day by day, newest first."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import groupby
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.core.paginator import Paginator
from django.db.models import CharField, F, IntegerField, Q, QuerySet, Value
from django.db.models.functions import Coalesce
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from apps.accounts.access import SignedInRequest
from apps.core.addressing import addressed
from apps.core.http.htmx import is_fragment
from apps.memory.models import KEEP_DELETED, Action, Kind, Memory, MemoryRevision, Status
from apps.memory.notes.history import CREATED, DiffPiece, text_diff
from apps.memory.notes.revisions import note_state

from .forms import SOURCES
from .months import HEIGHT, STEP, counts_per_day, month_of, span

SHOWN = (Status.ACTIVE, Status.SUPERSEDED, Status.ARCHIVED)


@dataclass(frozen=True, slots=True)
class Happened:
    """The notes of a user that fit a filter, by `began`: since when they hold, where that is not known when they were learned."""

    rows: QuerySet[Any]

    def within(self, first: date, last: date) -> "Happened":
        """Those that began from the beginning of `first` to the end of `last`, in the reader's time zone."""
        return Happened(self.rows.filter(span(first, last, "began")))

    def per_day(self, days: Collection[date]) -> dict[date, int]:
        """How many began on each of these days."""
        return counts_per_day(self.within(min(days), max(days)).rows, days, "began")

    def edge(self, *, before: datetime | None = None, since: datetime | None = None) -> datetime | None:
        """When the last one began, the last one before a moment, or the first one since a moment."""
        if since is not None:
            return self._end("began", Q(began__gte=since))
        return self._end("-began", Q(began__lt=before) if before else Q())

    def first(self) -> datetime | None:
        """When the first one began."""
        return self._end("began", Q())

    def _end(self, order: str, limit: Q) -> datetime | None:
        return self.rows.filter(limit).order_by(order).values_list("began", flat=True).first()

    def __getitem__(self, part: slice) -> list[Memory]:
        """A stretch of them, from the newest on."""
        return list(self.rows.select_related("superseded_by").order_by("-began", "-pk")[part])


def happened(user_id: UUID, *, kind: str = "", source: str = "") -> Happened:
    """The notes about a user's life: those of a kind, by an `Origin`; "" does not limit."""
    rows: QuerySet[Any] = Memory.objects.for_user(user_id).filter(status__in=SHOWN)
    if kind:
        rows = rows.filter(kind=kind)
    if source:
        rows = rows.filter(origin=source)
    return Happened(rows.annotate(began=Coalesce("valid_from", "created_at")))


@dataclass(frozen=True, slots=True)
class Fact:
    """A note as a timeline tells it. `over`: it does not hold any more."""

    note: Memory
    day: date
    known: bool  # since when it holds; else `day` is when it was learned
    over: bool


def facts(notes: Sequence[Memory]) -> list[Fact]:
    """The notes in their order."""
    now = timezone.now()
    return [
        Fact(
            note,
            timezone.localtime(note.valid_from or note.created_at).date(),
            note.valid_from is not None,
            note.status == Status.SUPERSEDED or bool(note.valid_to and note.valid_to <= now),
        )
        for note in notes
    ]


class HappenedForm(forms.Form):
    """A value that it does not know counts as not given."""

    kind = forms.ChoiceField(label="Kind", required=False, choices=[("", "All kinds"), *Kind.choices])
    source = forms.ChoiceField(
        label="Where it is from", required=False, choices=[("", "Any source"), *SOURCES]
    )


GROUPS: dict[str, frozenset[str]] = {
    "saved": frozenset({CREATED}),
    "changed": frozenset({Action.UPDATED, Action.MERGED, Action.UNDONE, Action.ACCEPTED}),
    "replaced": frozenset({Action.SUPERSEDED}),
    "removed": frozenset({Action.ARCHIVED, Action.DELETED}),
    "restored": frozenset({Action.RESTORED}),
}
"""Filter value -> the actions it takes in."""
ICONS = {"saved": "plus", "changed": "edit", "replaced": "retry", "removed": "trash", "restored": "undo"}


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
        days = span(first, last)
        return Events(self.saved.filter(days), self.changed.filter(days))

    def per_day(self, days: Collection[date]) -> dict[date, int]:
        """How many there are on each of these days."""
        within = self.within(min(days), max(days))
        saved, changed = (counts_per_day(rows, days) for rows in (within.saved, within.changed))
        return {day: saved[day] + changed[day] for day in days}

    def edge(self, *, before: datetime | None = None, since: datetime | None = None) -> datetime | None:
        """The time of the last one, of the last one before a moment, or of the first one since a moment."""
        if since is not None:
            return min(self._ends("created_at", Q(created_at__gte=since)), default=None)
        return max(self._ends("-created_at", Q(created_at__lt=before) if before else Q()), default=None)

    def first(self) -> datetime | None:
        """The time of the first one."""
        return min(self._ends("created_at", Q()), default=None)

    def _ends(self, order: str, limit: Q) -> list[datetime]:
        found = (
            rows.filter(limit).order_by(order).values_list("created_at", flat=True).first()
            for rows in (self.saved, self.changed)
        )
        return [moment for moment in found if moment is not None]

    def __getitem__(self, part: slice) -> list[Event]:
        """A stretch of them, from the newest on."""
        rows = _columns(
            self.saved, "pk", Value(CREATED, CharField()), "origin", Value(0, IntegerField())
        )
        changes = _columns(self.changed, "memory_id", F("action"), "actor", F("version"))
        found = rows.union(changes, all=True).order_by("-on", "-number", "-note")
        return [Event(*row) for row in found[part]]


def _columns(rows: QuerySet[Any], note: str, action: Any, actor: str, number: Any) -> QuerySet[Any]:
    named = rows.order_by().annotate(
        note=F(note), on=F("created_at"), did=action, by=F(actor), number=number
    )
    listed: QuerySet[Any] = named.values_list("note", "on", "did", "by", "number")
    return listed


def events_of(user_id: UUID, *, what: str = "", kind: str = "", source: str = "") -> Events:
    """The events of a user: of a key of GROUPS, about notes of a kind, by an `Origin`; "" does not limit.

    A note that was deleted is part of it for as long as it can be restored.
    """
    since = timezone.now() - KEEP_DELETED
    saved = Memory.objects.with_deleted(user_id).exclude(status=Status.DELETED, deleted_at__lte=since)
    changed = MemoryRevision.objects.for_user(user_id).exclude(
        memory__status=Status.DELETED, memory__deleted_at__lte=since
    )
    if kind:
        saved, changed = saved.filter(kind=kind), changed.filter(memory__kind=kind)
    if source:
        saved, changed = saved.filter(origin=source), changed.filter(actor=source)
    if what:
        saved = saved if CREATED in GROUPS[what] else saved.none()
        changed = changed.filter(action__in=GROUPS[what])
    return Events(saved, changed)


DID = {
    CREATED: "Saved",
    Action.UPDATED: "Changed",
    Action.MERGED: "Merged",
    Action.UNDONE: "Went back",
    Action.ACCEPTED: "Accepted",
    Action.SUPERSEDED: "Replaced",
    Action.ARCHIVED: "Archived",
    Action.DELETED: "Deleted",
    Action.RESTORED: "Brought back",
}
FIELDS = {
    "kind": "kind",
    "importance": "importance",
    "tier": "how long it is kept",
    "tags": "tags",
    "category": "category",
    "occasions": "when it comes up",
    "valid_from": "since when it holds",
    "valid_to": "until when it holds",
}
"""Names of a note's fields that a reader may care for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEvent:
    """An event in the words a page shows."""

    event: Event
    note: Memory
    text: str  # as the note read then
    diff: tuple[DiffPiece, ...] = ()  # where its words changed
    fields: tuple[str, ...] = ()  # that changed beside them
    replaced_by: str = ""

    @property
    def day(self) -> date:
        """The day of it, where the reader is."""
        return timezone.localtime(self.event.at).date()

    @property
    def did(self) -> str:
        waits = self.event.action == CREATED and self.note.status == Status.PENDING
        return "Proposed" if waits else DID[self.event.action]

    @property
    def group(self) -> str:
        return next(name for name, actions in GROUPS.items() if self.event.action in actions)

    @property
    def icon(self) -> str:
        return ICONS[self.group]


def shown_events(user_id: UUID, events: Sequence[Event]) -> list[ShownEvent]:
    """The events with their words; three queries however many there are."""
    keys = {event.note_id for event in events}
    notes = Memory.objects.with_deleted(user_id).select_related("superseded_by").in_bulk(keys)
    # The version that each ended, the one after it, and first versions.
    changed = [event for event in events if event.version]
    numbers = {number for event in changed for number in (event.version, event.version + 1)}
    wanted = Q(memory_id__in={event.note_id for event in changed}, version__in=numbers)
    wanted |= Q(memory_id__in={event.note_id for event in events if not event.version}, version=1)
    rows = MemoryRevision.objects.owned_by(user_id).filter(wanted)
    states = {(row.memory_id, row.version): row for row in rows}
    return [
        _shown_event(event, notes[event.note_id], states) for event in events if event.note_id in notes
    ]


def _shown_event(
    event: Event, note: Memory, states: dict[tuple[UUID, int], MemoryRevision]
) -> ShownEvent:
    if not event.version:
        first = states.get((note.pk, 1))
        return ShownEvent(
            event=event, note=note, text=addressed(first.content if first else note.content)
        )
    before, later = states[note.pk, event.version], states.get((note.pk, event.version + 1))
    text = later.content if later else note.content
    state = later.state if later else note_state(note, note.priority_cycle)
    differs = text != before.content
    replaced = note.superseded_by if event.action == Action.SUPERSEDED else None
    changed = (words for name, words in FIELDS.items() if before.state.get(name) != state.get(name))
    return ShownEvent(
        event=event,
        note=note,
        text=addressed(text),
        diff=tuple(text_diff(addressed(before.content), addressed(text))) if differs else (),
        fields=() if replaced else tuple(changed),
        replaced_by=addressed(replaced.content) if replaced and not differs else "",
    )


WHAT = [
    ("", "Everything"),
    ("saved", "Saved"),
    ("changed", "Changed"),
    ("replaced", "Replaced"),
    ("removed", "Archived or deleted"),
    ("restored", "Brought back"),
]


class EventForm(forms.Form):
    """A value that it does not know counts as not given."""

    what = forms.ChoiceField(label="What happened", required=False, choices=WHAT)
    kind = forms.ChoiceField(label="Kind", required=False, choices=[("", "All kinds"), *Kind.choices])
    source = forms.ChoiceField(
        label="Who did it", required=False, choices=[("", "By anybody"), *SOURCES]
    )


PAGE_SIZE = 50


@require_GET
def timeline(request: SignedInRequest) -> HttpResponse:
    """When things were true or happened; with `?by=learned` when they were learned and changed. `?month=2031-05`,
    `?day=2031-05-17` or `?year=2031`, filtered by `kind` and `source`, by `what` where it is about learning; for HTMX its list alone."""
    user_id, learned = request.user.pk, request.GET.get("by") == "learned"
    filters = (EventForm if learned else HappenedForm)(request.GET)
    filters.is_valid()
    given = {name: value for name, value in filters.cleaned_data.items() if value}
    events: Events | Happened = events_of(user_id, **given) if learned else happened(user_id, **given)
    asked = {name: request.GET.get(name, "") for name in ("month", "day", "year")}
    month = month_of(events, **asked)
    pages = Paginator(range(month.shown), PAGE_SIZE)  # they were counted by day
    page = pages.get_page(request.GET.get("page"))
    within = events.within(month.chosen or month.first, month.chosen or month.last)
    found = within[page.start_index() - 1 : page.end_index()] if month.shown else []
    rows: Sequence[ShownEvent] | Sequence[Fact]
    rows = shown_events(user_id, cast("list[Event]", found)) if learned else facts(cast("Any", found))
    ways = {"by": "learned", **given} if learned else given
    context: dict[str, Any] = {
        "nav": "memory",
        "learned": learned,
        "filters": filters,
        "month": month,
        "chart": {"height": HEIGHT, "step": STEP},
        "page": page,
        "days": [(day, list(group)) for day, group in groupby(rows, lambda row: row.day)],
        "asked": f"&{urlencode(ways)}" if ways else "",  # for the page's links to repeat
        "narrowed": bool(given),
        "empty": not month.total and not Memory.objects.with_deleted(user_id).exists(),
    }
    partial = is_fragment(request) and not request.headers.get("HX-Boosted")
    return render(
        request, "memory/timeline/_month.html" if partial else "memory/timeline/page.html", context
    )
