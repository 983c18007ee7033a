"""The overview that `/memory/` opens on: how the memory grows, what it holds, what waits for its owner; passages that wait to be read;
and the quality page: the figures, and the notes behind each."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import filesizeformat
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.http.htmx import is_fragment
from apps.memory.capture.selectors import Passage, capture_status, given_up, waiting_windows
from apps.memory.models import STANDING, Kind, Memory, Status, Tier, Trust
from apps.memory.notes.review import review_queue
from apps.memory.notes.selectors import (
    memories_by_id,
    open_contradictions,
    standing_notes,
    with_present_priority,
)
from apps.memory.quality import duplicates, faded, never_used, without_occasions
from apps.memory.summary.keeping import Counted, Summary, summary_ask, summary_of

from .charts import cost, growth
from .done import done_last
from .forms import SOURCES, FilterForm
from .notes import Row


@dataclass(frozen=True, slots=True)
class Share:
    """A line of a breakdown; `percent` of the largest of its group, `href` the list of these notes."""

    label: str
    count: int
    percent: int
    href: str


def breakdown(figures: Counted) -> list[tuple[str, list[Share]]]:
    """The groups with what is in them, most first; a group of one says nothing and is left out."""
    groups: tuple[tuple[str, str, dict[str, int], Iterable[tuple[Any, Any]]], ...] = (
        ("By kind", "kind", figures.kinds, Kind.choices),
        ("By source", "source", figures.sources, SOURCES),
        ("By term", "tier", figures.terms, Tier.choices),
    )
    found = []
    for title, name, counts, labels in groups:
        words = {str(value): str(label) for value, label in labels}
        most = max(counts.values(), default=0)
        shares = [
            Share(
                label=words[value],
                count=count,
                percent=max(1, round(100 * count / most)),
                href=f"{reverse('memory:list')}?{urlencode({name: value})}",
            )
            for value, count in counts.items()
        ]
        if len(shares) > 1:
            found.append((title, shares))
    return found


def notes_kept(user_id: UUID, keys: Iterable[str]) -> list[Memory]:
    """The notes with these ids that are there still, in their order."""
    wanted = [UUID(key) for key in keys]
    notes = memories_by_id(user_id, wanted) if wanted else {}
    return [notes[key] for key in wanted if key in notes]


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
    """Notes that repeat others' words, newest first."""
    return Memory.objects.for_user(user_id).filter(trust=Trust.UNTRUSTED).order_by("-created_at")


LISTS: dict[str, tuple[str, Callable[[UUID], QuerySet[Memory]]]] = {
    "unused": ("Never used", never_used),
    "faded": ("Faded", faded),
    "untrusted": ("From untrusted sources", untrusted),
    "occasions": ("No “when it matters”", without_occasions),
}


COUNTS = {
    "unused": "never_used",
    "faded": "faded",
    "untrusted": "untrusted",
    "occasions": "without_occasions",
}
"""List -> the figure that says how long it is."""


@require_GET
def quality(request: SignedInRequest) -> HttpResponse:
    """The figures; `?show=` lists the notes behind one of them."""
    user_id = request.user.pk
    shown = request.GET.get("show", "")
    summary = summary_of(user_id)
    context: dict[str, Any] = {"nav": "memory", "shown": shown, "summary": summary}
    if summary is not None:
        values = summary.figures.quality
        context |= {
            "figures": figures(values),
            "reading": reading_figures(values),
            "breakdown": [] if shown else breakdown(summary.figures),
            "most_used": [] if shown else notes_kept(user_id, summary.figures.most_used),
        }
    if shown == "contradictions":
        context["edges"] = open_contradictions(user_id)[:PAGE_SIZE]
    elif summary is not None and shown == "duplicates":
        pairs = ((UUID(one), UUID(two), share) for one, two, share in summary.figures.pairs)
        context["pairs"] = duplicates(user_id, pairs)
    elif summary is not None and shown in LISTS:
        context |= _listed(user_id, shown, summary, request.GET.get("page"))
    return render(request, "memory/quality/page.html", context)


def _listed(user_id: UUID, shown: str, summary: Summary, number: str | None) -> dict[str, Any]:
    title, notes = LISTS[shown]
    found = with_present_priority(user_id, notes(user_id))
    pages = Paginator(found, PAGE_SIZE)
    vars(pages)["count"] = summary.figures.quality[COUNTS[shown]]  # in place of a query over all notes
    page = pages.get_page(number)
    rows = [Row(note) for note in page] if page.paginator.count else []
    return {"title": title, "page": page, "rows": rows}


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
        (
            "never_used",
            "Never used",
            "not brought up nor opened, though older than a week",
            f"{shown}unused",
        ),
        ("faded", "Faded", "not used for long", f"{shown}faded"),
        (
            "without_occasions",
            "No “when it matters”",
            "come up by their text alone",
            f"{shown}occasions",
        ),
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


STANDING_SHOWN = 6
QUALITY_SHOWN = 4
PASSAGES_SHOWN = 30
STALE_SECONDS = 120
"""The worker is asked for newer figures where they are older."""


@require_GET
def overview(request: SignedInRequest) -> HttpResponse:
    """The page; an address with a filter is an old one of the list, which stands elsewhere now."""
    if request.GET.keys() & FilterForm.base_fields.keys() or "page" in request.GET:
        return redirect(f"{reverse('memory:list')}?{request.GET.urlencode()}")
    user_id = request.user.pk
    context: dict[str, Any] = {"nav": "memory", **_waiting(user_id), **_counted(user_id)}
    if is_fragment(request):
        return render(request, "memory/overview/_figures.html", context)
    standing = standing_notes(user_id, now=timezone.now(), limit=STANDING_SHOWN + 1)
    context |= {
        "standing": standing[:STANDING_SHOWN],
        "more_standing": len(standing) > STANDING_SHOWN,
        "standing_category": STANDING,
        "empty": not Memory.objects.for_user(user_id).exists(),
        **done_last(request),
    }
    return render(request, "memory/overview/page.html", context)


def _waiting(user_id: UUID) -> dict[str, Any]:
    """Counts of notes that wait for the user's word, and of passages that wait to be read."""
    review, against = review_queue(user_id).count(), open_contradictions(user_id).count()
    return {
        "review": review,
        "against": against,
        "capture": capture_status(user_id),
        "badges": {"memory": review + against},  # what the frame would count once more
    }


def _counted(user_id: UUID) -> dict[str, Any]:
    summary = summary_of(user_id)
    if summary is None:
        return {"counting": True}
    counts, today = summary.figures, timezone.localdate()
    values = counts.quality
    return {
        "made_at": summary.made_at,
        "stale": (timezone.now() - summary.made_at).total_seconds() > STALE_SECONDS,
        "counts": counts,
        "tiles": _tiles(values, sum(counts.days.values())),
        "growth": growth(counts, today),
        "cost": cost(counts, today),
        "breakdown": breakdown(counts),
        "most_used": notes_kept(user_id, counts.most_used),
        "never_used": notes_kept(user_id, counts.never_used),
        "quality": [figure for figure in figures(values) if figure.warn or figure.number != "0"][
            :QUALITY_SHOWN
        ],
        "reading": reading_figures(values),
    }


def _tiles(values: dict[str, Any], lately: int) -> list[Figure]:
    listed = reverse("memory:list")
    return [
        Figure(f"{values['active']:,}", "Memories", "that hold now", listed),
        Figure(f"{lately:,}", "New", "saved in the last 30 days", f"{listed}?ordering=-created_at"),
        Figure(f"{values['files']:,}", "Files", "longer texts", reverse("memory:files")),
        Figure(
            f"{values['archived']:,}",
            "Archived",
            "put aside",
            f"{listed}?status={Status.ARCHIVED}",
        ),
    ]


@require_POST
def renew(request: SignedInRequest) -> HttpResponse:
    """Asks the worker to count anew."""
    summary_ask(request.user.pk)
    return HttpResponse(status=204) if is_fragment(request) else redirect("memory:overview")


@require_GET
def passages(request: SignedInRequest) -> HttpResponse:
    """Passages of conversations that wait to be read, oldest first, and why; and those that could not be read."""
    user_id = request.user.pk
    status = capture_status(user_id)
    page = Paginator(waiting_windows(user_id), PASSAGES_SHOWN).get_page(request.GET.get("page"))
    context = {
        "nav": "memory",
        "capture": status,
        "given_up": given_up(user_id) if status.gave_up else [],
        "page": page,
        "passages": [Passage.of(window) for window in page],
    }
    return render(request, "memory/passages.html", context)
