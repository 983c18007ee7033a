"""Events and facts, by the time at which they began."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any
from uuid import UUID

from django import forms
from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.memory.models import Kind, Memory, Status

from .forms import SOURCES
from .months import counts_per_day, span

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
