"""The page of quality: each figure, and the notes behind it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.views.decorators.http import require_GET

from apps.accounts.access import SignedInRequest
from apps.memory.models import Memory, Trust
from apps.memory.quality.breakdown import breakdown, most_used
from apps.memory.quality.selectors import duplicates, faded, memory_quality, never_retrieved
from apps.memory.selectors import open_contradictions, with_present_priority

from .listing import Row

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
