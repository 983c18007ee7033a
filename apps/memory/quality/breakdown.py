"""Breakdown of a user's notes: how many of each kind, term and source, and the most used."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, QuerySet
from django.urls import reverse

from apps.memory.forms import SOURCES
from apps.memory.models import Kind, Memory, Status, Tier

MOST_USED = 5


@dataclass(frozen=True, slots=True)
class Share:
    """A line of a breakdown; `percent` of the largest of its group, `href` the list of these notes."""

    label: str
    count: int
    percent: int
    href: str


def breakdown(user_id: UUID) -> list[tuple[str, list[Share]]]:
    """The groups with what is in them, most first; a group of one says nothing and is left out."""
    notes = Memory.objects.for_user(user_id).filter(status=Status.ACTIVE)
    groups = (
        ("By kind", "kind", "kind", Kind.choices),
        ("By source", "source", "origin", SOURCES),
        ("By term", "tier", "tier", Tier.choices),
    )
    found = [
        (
            title,
            name,
            notes.values_list(column).annotate(count=Count("pk")).order_by("-count", column),
            labels,
        )
        for title, name, column, labels in groups
    ]
    return [
        (title, _shares(name, dict(counts), labels))
        for title, name, counts, labels in found
        if len(counts) > 1
    ]


def most_used(user_id: UUID) -> QuerySet[Memory]:
    """The notes that were brought up or found most often."""
    notes = Memory.objects.for_user(user_id).filter(status=Status.ACTIVE, access_count__gt=0)
    return notes.order_by("-access_count", "-last_accessed", "-pk")[:MOST_USED]


def _shares(name: str, counts: dict[str, int], labels: Iterable[tuple[Any, Any]]) -> list[Share]:
    words = {str(value): str(label) for value, label in labels}
    most = max(counts.values())
    here = reverse("memory:list")
    return [
        Share(words[value], count, max(1, round(100 * count / most)), f"{here}?{urlencode({name: value})}")
        for value, count in counts.items()
    ]
