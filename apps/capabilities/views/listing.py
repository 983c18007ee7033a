"""The page of all capabilities."""

from typing import Any

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.accounts.access import SignedInRequest
from apps.capabilities.matching import capabilities_matching
from apps.capabilities.models import Capability, Status
from apps.capabilities.selectors import capabilities_for, retire_reason, versions_waiting

from .shared import percent, sandbox_problem, standing, waiting_standing

PAGE_SIZE = 50
FOUND = 20
MAX_QUERY_CHARS = 500
NEAR = 0.05
"""Score from which a capability is shown for a search, below what the assistant is told of: people look for themselves."""


@require_GET
def capabilities(request: SignedInRequest) -> HttpResponse:
    """By name, or the best for what was searched; the list alone where htmx asks for it."""
    query = (
        request.GET.get("q", "")
        .replace("\x00", "")[:MAX_QUERY_CHARS]
        .encode("utf-8", "ignore")
        .decode()
        .strip()
    )
    status = request.GET.get("status", "")
    status = status if status in Status.values else ""
    rows = capabilities_for(request.user.pk, status=status)
    if query:
        rows_found: Any = _search(request, query, status)
    else:
        rows_found = rows
    shown = Paginator(rows_found, PAGE_SIZE).get_page(request.GET.get("page"))
    context = {
        "nav": "capabilities",
        "query": query,
        "status": status,
        "statuses": Status.choices,
        "page": shown,
        "rows": _rows(request, list(shown)),
        "sandbox_problem": sandbox_problem(),
        "any": bool(shown.paginator.count) or capabilities_for(request.user.pk).exists(),
    }
    partial = request.headers.get("HX-Request") and request.headers.get("HX-Target", "") in {
        "capability-list",
        "#capability-list",
    }
    return render(request, "capabilities/_list.html" if partial else "capabilities/list.html", context)


def _search(request: SignedInRequest, query: str, status: str) -> list[Capability]:
    """Those whose words occur, and the active ones that do what is asked, each once."""
    by_words = list(capabilities_for(request.user.pk, status=status, q=query)[:FOUND])
    hits = capabilities_matching(request.user.pk, query, top_k=FOUND)
    by_meaning = [
        found for hit, found in hits if hit.score >= NEAR and (not status or found.status == status)
    ]
    return list({row.pk: row for row in [*by_words, *by_meaning]}.values())


def _rows(request: SignedInRequest, shown: list[Capability]) -> list[dict[str, Any]]:
    waiting = versions_waiting(request.user.pk, shown)
    return [
        {
            "capability": capability,
            "standing": standing(capability),
            "waiting": waiting_standing(waiting[capability.pk]) if capability.pk in waiting else None,
            "success": percent(capability),
            "retire": retire_reason(capability),
        }
        for capability in shown
    ]
