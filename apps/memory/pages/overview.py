"""The overview that `/memory/` opens on: how the memory grows, what it holds, what waits for its owner; and passages that wait to be read."""

from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.http.htmx import is_fragment
from apps.memory.capture.selectors import Passage, capture_status, given_up, waiting_windows
from apps.memory.models import STANDING, Memory, Status
from apps.memory.notes.review import review_queue
from apps.memory.notes.selectors import open_contradictions, standing_notes
from apps.memory.summary.keeping import summary_ask, summary_of

from .charts import cost, growth
from .done import done_last
from .forms import FilterForm
from .quality import Figure, breakdown, figures, notes_kept, reading_figures

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
