"""The timeline: a month of the memory, day by day, newest first."""

from typing import Any, cast
from urllib.parse import urlencode

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from apps.accounts.access import SignedInRequest
from apps.memory.models import Memory

from .events import events_of
from .forms import EventForm
from .months import HEIGHT, STEP, month_of
from .telling import by_day, told

PAGE_SIZE = 50


@require_GET
def timeline(request: SignedInRequest) -> HttpResponse:
    """`?month=2031-05` or `?day=2031-05-17`, filtered by `what`, `kind` and `source`; for HTMX its list alone."""
    user_id = request.user.pk
    filters = EventForm(request.GET)
    events = events_of(user_id, filters.wanted())
    month = month_of(events, request.GET.get("month", ""), request.GET.get("day", ""))
    page = Paginator(cast("Any", events.within(*month.span)), PAGE_SIZE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "nav": "memory",
        "filters": filters,
        "month": month,
        "chart": {"height": HEIGHT, "step": STEP},
        "page": page,
        "days": by_day(told(user_id, list(page))),
        "asked": _asked(filters),
        "empty": not month.total and not Memory.objects.with_deleted(user_id).exists(),
    }
    partial = request.headers.get("HX-Request") and not request.headers.get("HX-Boosted")
    return render(request, "memory/timeline/_month.html" if partial else "memory/timeline/page.html", context)


def _asked(filters: EventForm) -> str:
    """The filter as a part of a query string, which the links of the page repeat."""
    given = {name: value for name, value in filters.cleaned_data.items() if value}
    return f"&{urlencode(given)}" if given else ""
