"""The timeline: a month of the memory, day by day, newest first."""

import calendar
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import groupby
from typing import Any, cast
from urllib.parse import urlencode
from uuid import UUID

from django import forms
from django.core.paginator import Paginator
from django.db.models import CharField, Count, F, IntegerField, Max, Min, Q, QuerySet, Value
from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.dateparse import parse_date
from django.views.decorators.http import require_GET

from apps.accounts.access import SignedInRequest
from apps.core.addressing import addressed
from apps.memory.models import KEEP_DELETED, Action, Kind, Memory, MemoryRevision, Status
from apps.memory.notes.history import CREATED, Piece, text_diff
from apps.memory.notes.revisions import note_state

from .done import is_fragment
from .forms import SOURCES

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
        span = _span(first, last)
        return Events(self.saved.filter(span), self.changed.filter(span))

    def count(self) -> int:
        return self.saved.count() + self.changed.count()

    def per_day(self, days: Collection[date]) -> dict[date, int]:
        """How many there are on each of these days."""
        totals: dict[date, int] = dict.fromkeys(days, 0)
        for rows in (self.saved, self.changed):
            counts = {f"d{day:%Y%m%d}": Count("pk", filter=_span(day, day)) for day in days}
            found = rows.order_by().aggregate(**counts)
            for day in days:
                totals[day] += found[f"d{day:%Y%m%d}"]
        return totals

    def edges(self, limit: Q, which: Max | Min) -> list[datetime]:
        """When the last or first of those within a limit was, among both."""
        found = (rows.filter(limit).aggregate(edge=which)["edge"] for rows in (self.saved, self.changed))
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


def _begins(day: date) -> datetime:
    """When a day begins where the reader is."""
    return timezone.make_aware(datetime.combine(day, time.min))


def _span(first: date, last: date) -> Q:
    return Q(created_at__gte=_begins(first), created_at__lt=_begins(last + timedelta(days=1)))


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


HEIGHT = 64
STEP = 10
LEAST = 3


@dataclass(frozen=True, slots=True)
class Bar:
    """A day of the month in the picture, in its units; `height` 0 where nothing happened."""

    day: date
    count: int
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True)
class Month:
    """The month that is shown: its days with how much happened on each."""

    first: date
    last: date
    chosen: date | None  # the one day that is shown of it, if any
    bars: Sequence[Bar]
    before: date | None  # in the month before it with events
    after: date | None

    @property
    def total(self) -> int:
        return sum(bar.count for bar in self.bars)

    @property
    def width(self) -> int:
        return len(self.bars) * STEP


def month_of(events: Events, month: str, day: str) -> Month:
    """The month `2031-05` or that of the day `2031-05-17`; else the last one in which something happened."""
    newest, chosen = Max("created_at"), _date(day)
    latest = max(events.edges(Q(), newest), default=timezone.now())
    first = (chosen or _date(f"{month}-01") or timezone.localtime(latest).date()).replace(day=1)
    last = first.replace(day=calendar.monthrange(first.year, first.month)[1])
    days = [first + timedelta(days=number) for number in range(last.day)]
    counts = events.within(first, last).per_day(days)
    most = max(counts.values()) or 1
    bars = []
    for place, (each, count) in enumerate(counts.items()):
        height = max(LEAST, round(count / most * HEIGHT)) if count else 0
        bars.append(Bar(each, count, place * STEP, HEIGHT - height, height))
    before = events.edges(Q(created_at__lt=_begins(first)), newest)
    after = events.edges(Q(created_at__gte=_begins(last + timedelta(days=1))), Min("created_at"))
    return Month(
        first=first,
        last=last,
        chosen=chosen,
        bars=bars,
        before=timezone.localtime(max(before)).date() if before else None,
        after=timezone.localtime(min(after)).date() if after else None,
    )


def _date(text: str) -> date | None:
    try:
        found = parse_date(text) if text.isascii() else None
    except ValueError:
        return None
    return found if found and 1900 < found.year < 9000 else None


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
    diff: tuple[Piece, ...] = ()  # where its words changed
    fields: tuple[str, ...] = ()  # that changed beside them
    replaced_by: str = ""

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
    """`?month=2031-05` or `?day=2031-05-17`, filtered by `what`, `kind` and `source`; for HTMX its list alone."""
    user_id = request.user.pk
    filters = EventForm(request.GET)
    filters.is_valid()
    given = {name: value for name, value in filters.cleaned_data.items() if value}
    events = events_of(user_id, **given)
    month = month_of(events, request.GET.get("month", ""), request.GET.get("day", ""))
    shown = cast("Any", events.within(month.chosen or month.first, month.chosen or month.last))
    page = Paginator(shown, PAGE_SIZE).get_page(request.GET.get("page"))
    days = groupby(
        shown_events(user_id, list(page)), lambda row: timezone.localtime(row.event.at).date()
    )
    context: dict[str, Any] = {
        "nav": "memory",
        "filters": filters,
        "month": month,
        "chart": {"height": HEIGHT, "step": STEP},
        "page": page,
        "days": [(day, list(rows)) for day, rows in days],
        "asked": f"&{urlencode(given)}" if given else "",  # for the page's links to repeat
        "empty": not month.total and not Memory.objects.with_deleted(user_id).exists(),
    }
    partial = is_fragment(request) and not request.headers.get("HX-Boosted")
    return render(
        request, "memory/timeline/_month.html" if partial else "memory/timeline/page.html", context
    )
