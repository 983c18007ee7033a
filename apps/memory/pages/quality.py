"""How good the memory is: its figures, and the page that shows them with the notes behind each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET

from apps.accounts.access import SignedInRequest
from apps.memory.capture.selectors import capture_figures
from apps.memory.models import PRIORITY_FLOOR, Kind, Memory, MemoryFile, Status, Tier, Trust
from apps.memory.selectors import (
    current_cycle,
    memories_by_id,
    open_contradictions,
    present_priority,
    with_present_priority,
)
from apps.memory.similarity import SAME, differs
from apps.search.documents import Source
from apps.search.selectors import alike_pairs

from .forms import SOURCES
from .notes import Row

UNUSED_AFTER = timedelta(days=7)
"""A younger note has had no chance to be of use yet."""
SHOWN = 100


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two active notes that say the same, the older one first."""

    one: Memory
    two: Memory
    similarity: float


def memory_quality(user_id: UUID) -> dict[str, Any]:
    """The figures, JSON-ready; shares are of 1, None where nothing was counted.

    `duplicates` are pairs of active notes, `never_retrieved` active notes older than a week that neither a search nor
    the chat has brought up, `gated_out` the share of read passages in which the gate found nothing worth keeping.
    """
    counts = _counts(user_id)
    capture = capture_figures(user_id)
    judged, passed = capture["gated"], capture["passed"]
    return {
        "active": counts["active"],
        "duplicates": len(duplicate_ids(user_id)),
        "contradictions_open": open_contradictions(user_id).count(),
        "never_retrieved": never_retrieved(user_id).count(),
        "faded": faded(user_id).count(),
        "pending_review": counts["pending"],
        "archived": counts["archived"],
        "untrusted": counts["untrusted"],
        "untrusted_share": _share(counts["untrusted"], counts["total"]),
        "gated_out": _share(judged - passed, judged),
        "tokens_per_memory": capture["tokens_per_memory"],
        "cost_per_memory_usd": capture["cost_per_memory"],
        "injected_again": capture["injected_again"],
        "files": counts["files"],
        "file_bytes": counts["file_bytes"],
    }


def _counts(user_id: UUID) -> dict[str, int]:
    files = MemoryFile.objects.for_user(user_id).aggregate(
        files=Count("pk"), file_bytes=Sum("size", default=0)
    )
    notes = Memory.objects.for_user(user_id).aggregate(
        total=Count("pk"),
        active=Count("pk", filter=Q(status=Status.ACTIVE)),
        pending=Count("pk", filter=Q(status=Status.PENDING)),
        archived=Count("pk", filter=Q(status=Status.ARCHIVED)),
        untrusted=Count("pk", filter=Q(trust=Trust.UNTRUSTED)),
    )
    return {**notes, **files}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def active(user_id: UUID) -> QuerySet[Memory]:
    return Memory.objects.for_user(user_id).filter(status=Status.ACTIVE)


def never_retrieved(user_id: UUID) -> QuerySet[Memory]:
    """Active notes older than a week that were never brought up, oldest first."""
    since = timezone.now() - UNUSED_AFTER
    return active(user_id).filter(access_count=0, created_at__lt=since).order_by("created_at")


def faded(user_id: UUID) -> QuerySet[Memory]:
    """Active notes whose priority is below the floor by now, oldest first."""
    notes = active(user_id).annotate(priority_now=present_priority(current_cycle(user_id)))
    return notes.filter(priority_now__lt=PRIORITY_FLOOR).order_by("created_at")


def duplicate_ids(user_id: UUID) -> list[tuple[UUID, UUID, float]]:
    """Pairs of active notes that say the same, the most alike first: calibrated similarity of 0.85 and more, and no
    difference in numbers, names or between yes and no."""
    contents = dict(active(user_id).values_list("pk", "content"))
    pairs = alike_pairs(user_id, source=Source.MEMORY, among=contents, at_least=SAME)
    return [
        pair
        for pair in pairs
        if pair[0] in contents and pair[1] in contents and not differs(contents[pair[0]], contents[pair[1]])
    ]


def duplicates(user_id: UUID, limit: int = SHOWN) -> list[Duplicate]:
    """The first of these pairs, with their notes."""
    pairs = duplicate_ids(user_id)[:limit]
    notes = memories_by_id(user_id, {key for one, two, _ in pairs for key in (one, two)})
    found = []
    for one, two, similarity in pairs:
        if one in notes and two in notes:
            older, newer = sorted((notes[one], notes[two]), key=lambda note: note.created_at)
            found.append(Duplicate(older, newer, similarity))
    return found


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


PAGE_SIZE = 30


@dataclass(frozen=True, slots=True)
class Figure:
    """One number: what it counts, what it means, where its notes are ("" for none)."""

    number: str
    label: str
    hint: str
    href: str = ""
    warn: bool = False


def untrusted(user_id: UUID) -> QuerySet[Memory]:
    return Memory.objects.for_user(user_id).filter(trust=Trust.UNTRUSTED).order_by("-created_at")


LISTS: dict[str, tuple[str, Callable[[UUID], QuerySet[Memory]]]] = {
    "unused": ("Never brought up", never_retrieved),
    "faded": ("Faded", faded),
    "untrusted": ("From untrusted sources", untrusted),
}


@require_GET
def quality(request: SignedInRequest) -> HttpResponse:
    """The figures; `?show=` lists the notes behind one of them."""
    user_id = request.user.pk
    shown = request.GET.get("show", "")
    values = memory_quality(user_id)
    context: dict[str, Any] = {
        "nav": "memory",
        "figures": figures(user_id, values),
        "reading": reading_figures(values),
        "breakdown": breakdown(user_id),
        "most_used": most_used(user_id),
        "shown": shown,
    }
    if shown == "duplicates":
        context["pairs"] = duplicates(user_id)
    elif shown == "contradictions":
        context["edges"] = open_contradictions(user_id)[:PAGE_SIZE]
    elif shown in LISTS:
        title, notes = LISTS[shown]
        page = Paginator(with_present_priority(user_id, notes(user_id)), PAGE_SIZE).get_page(
            request.GET.get("page")
        )
        context |= {"title": title, "page": page, "rows": [Row(note) for note in page]}
    return render(request, "memory/quality/page.html", context)


def figures(user_id: UUID, values: dict[str, Any]) -> list[Figure]:
    """Figures for tidying up, most worth looking at first."""
    here, notes = reverse("memory:quality"), reverse("memory:list")
    return [
        Figure(
            _count(values["duplicates"]),
            "Said twice",
            "pairs that could be one",
            f"{here}?show=duplicates",
            warn=True,
        ),
        Figure(
            _count(values["contradictions_open"]),
            "Contradictions",
            "pairs that cannot both be true",
            f"{here}?show=contradictions",
            warn=True,
        ),
        Figure(
            _count(values["pending_review"]),
            "Waiting for review",
            "not used without your yes",
            reverse("memory:review"),
            warn=True,
        ),
        Figure(
            _count(values["never_retrieved"]),
            "Never brought up",
            "though older than a week",
            f"{here}?show=unused",
        ),
        Figure(_count(values["faded"]), "Faded", "not used for long", f"{here}?show=faded"),
        Figure(
            _count(values["untrusted"]),
            "Untrusted",
            "repeat pages, files or others",
            f"{here}?show=untrusted",
        ),
        Figure(_count(values["archived"]), "Archived", "put aside", f"{notes}?status=archived"),
        Figure(_count(values["files"]), "Files", _size(values["file_bytes"]), reverse("memory:files")),
    ]


def reading_figures(values: dict[str, Any]) -> list[Figure]:
    """Results and cost of reading by itself; empty until it has read something."""
    if values["gated_out"] is None and not values["tokens_per_memory"]:
        return []
    return [
        Figure(_percent(values["gated_out"]), "Passed over", "of what was said held nothing to keep"),
        Figure(
            _count(values["tokens_per_memory"]), "Tokens per memory", _cost(values["cost_per_memory_usd"])
        ),
        Figure(
            _count(values["injected_again"]), "Not saved twice", "memories of its own that Izzy heard again"
        ),
    ]


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:.0%}"


def _cost(dollars: float | None) -> str:
    return "" if dollars is None else f"${dollars:.4f} each"


def _size(count: int) -> str:
    return filesizeformat(count) if count else ""
