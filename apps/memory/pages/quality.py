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
from apps.memory.models import (
    PRIORITY_FLOOR,
    Kind,
    Memory,
    MemoryFile,
    OccasionsBy,
    OccasionsWait,
    Status,
    Tier,
    Trust,
)
from apps.memory.notes.selectors import (
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
    `occasions_by_…` are active notes by whose their occasions are, `occasions_waiting` those about which no model was asked.
    """
    counts = Memory.objects.for_user(user_id).aggregate(
        total=Count("pk"),
        active=Count("pk", filter=Q(status=Status.ACTIVE)),
        pending_review=Count("pk", filter=Q(status=Status.PENDING)),
        archived=Count("pk", filter=Q(status=Status.ARCHIVED)),
        untrusted=Count("pk", filter=Q(trust=Trust.UNTRUSTED)),
        **{
            f"occasions_by_{by}": Count("pk", filter=Q(status=Status.ACTIVE, occasions_by=by))
            for by in (OccasionsBy.MODEL, OccasionsBy.RULES, OccasionsBy.USER)
        },
        occasions_waiting=Count("pk", filter=Q(occasions_wait=OccasionsWait.MODEL)),
    )
    capture = capture_figures(user_id)
    judged, passed = capture["gated"], capture["passed"]
    return {
        "duplicates": len(duplicate_ids(user_id)),
        "contradictions_open": open_contradictions(user_id).count(),
        "never_retrieved": never_retrieved(user_id).count(),
        "faded": faded(user_id).count(),
        "untrusted_share": _share(counts["untrusted"], counts.pop("total")),
        **counts,
        "without_occasions": without_occasions(user_id).count(),
        "gated_out": _share(judged - passed, judged),
        "tokens_per_memory": capture["tokens_per_memory"],
        "cost_per_memory_usd": capture["cost_per_memory"],
        "injected_again": capture["injected_again"],
        **MemoryFile.objects.for_user(user_id).aggregate(
            files=Count("pk"), file_bytes=Sum("size", default=0)
        ),
    }


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


def without_occasions(user_id: UUID) -> QuerySet[Memory]:
    """Active notes that come up by their text alone, oldest first."""
    return active(user_id).filter(occasions=[]).order_by("created_at")


def duplicate_ids(user_id: UUID) -> list[tuple[UUID, UUID, float]]:
    """Pairs of active notes that say the same, the most alike first: calibrated similarity of 0.85 and more, and no
    difference in numbers, names or between yes and no."""
    contents = dict(active(user_id).values_list("pk", "content"))
    pairs = alike_pairs(user_id, source=Source.MEMORY, among=contents, at_least=SAME)
    return [
        (one, two, similarity)
        for one, two, similarity in pairs
        if {one, two} <= contents.keys() and not differs(contents[one], contents[two])
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
    groups: tuple[tuple[str, str, str, Iterable[tuple[Any, Any]]], ...] = (
        ("By kind", "kind", "kind", Kind.choices),
        ("By source", "source", "origin", SOURCES),
        ("By term", "tier", "tier", Tier.choices),
    )
    found = []
    for title, name, column, labels in groups:
        rows = active(user_id).values_list(column).annotate(count=Count("pk")).order_by("-count", column)
        words = {str(value): str(label) for value, label in labels}
        shares = [
            Share(
                label=words[value],
                count=count,
                percent=max(1, round(100 * count / rows[0][1])),
                href=f"{reverse('memory:list')}?{urlencode({name: value})}",
            )
            for value, count in rows
        ]
        if len(shares) > 1:
            found.append((title, shares))
    return found


def most_used(user_id: UUID) -> QuerySet[Memory]:
    """The notes that were brought up or found most often."""
    notes = active(user_id).filter(access_count__gt=0)
    return notes.order_by("-access_count", "-last_accessed", "-pk")[:MOST_USED]


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
    "occasions": ("Without an occasion", without_occasions),
}


@require_GET
def quality(request: SignedInRequest) -> HttpResponse:
    """The figures; `?show=` lists the notes behind one of them."""
    user_id = request.user.pk
    shown = request.GET.get("show", "")
    values = memory_quality(user_id)
    context: dict[str, Any] = {
        "nav": "memory",
        "figures": figures(values),
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


def figures(values: dict[str, Any]) -> list[Figure]:
    """Figures for tidying up, most worth looking at first."""
    shown, size = f"{reverse('memory:quality')}?show=", values["file_bytes"]
    rows = (
        ("duplicates", "Said twice", "pairs that could be one", f"{shown}duplicates", True),
        (
            "contradictions_open",
            "Contradictions",
            "pairs that cannot both be true",
            f"{shown}contradictions",
            True,
        ),
        (
            "pending_review",
            "Waiting for review",
            "not used without your yes",
            reverse("memory:review"),
            True,
        ),
        ("never_retrieved", "Never brought up", "though older than a week", f"{shown}unused"),
        ("faded", "Faded", "not used for long", f"{shown}faded"),
        ("without_occasions", "Without an occasion", "come up by their text alone", f"{shown}occasions"),
        ("untrusted", "Untrusted", "repeat pages, files or others", f"{shown}untrusted"),
        ("archived", "Archived", "put aside", f"{reverse('memory:list')}?status=archived"),
        ("files", "Files", filesizeformat(size) if size else "", reverse("memory:files")),
    )
    return [Figure(_count(values[name]), *row) for name, *row in rows]


def reading_figures(values: dict[str, Any]) -> list[Figure]:
    """Results and cost of reading by itself; empty until it has read something."""
    passed_over, cost = values["gated_out"], values["cost_per_memory_usd"]
    if passed_over is None and not values["tokens_per_memory"]:
        return []
    share = "–" if passed_over is None else f"{passed_over:.0%}"
    price = "" if cost is None else f"${cost:.4f} each"
    again = "memories of its own that Izzy heard again"
    return [
        Figure(share, "Passed over", "of what was said held nothing to keep"),
        Figure(_count(values["tokens_per_memory"]), "Tokens per memory", price),
        Figure(_count(values["injected_again"]), "Not saved twice", again),
    ]


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
