"""The page of usage, and what the user has allowed for more than one call."""

from datetime import datetime, time, timedelta

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.agent.grants import grant_remove, grants_for
from apps.agent.selectors import usage_summary
from apps.agent.usage_figures import BAR_WIDTH, CHART_HEIGHT, bars, lines, money, tool_lines, total_line
from apps.core.errors import NotFound
from apps.core.ids import parse_id

PERIODS = (7, 30, 90)
"""Days that can be chosen, today included."""
DEFAULT_DAYS = 30


@never_cache
@require_GET
def usage(request: SignedInRequest) -> HttpResponse:
    """The last days in the user's time zone; `?days=` is one of `PERIODS`."""
    wanted = request.GET.get("days", "")
    days = int(wanted) if wanted in map(str, PERIODS) else DEFAULT_DAYS
    first = timezone.localdate() - timedelta(days=days - 1)
    since = timezone.make_aware(datetime.combine(first, time.min))
    found = usage_summary(user_id=request.user.pk, since=since, until=timezone.now())
    total = total_line(found["total"])
    by_cost = total.cost > 0
    chart = bars(found["by_day"], first, days, by_cost=by_cost)
    context = {
        "nav": "settings",
        "tab": "usage",
        "days": days,
        "periods": PERIODS,
        "total": total,
        "cost": money(total.cost) if by_cost else "–",
        "cached": f"{found['total']['cache_read_tokens'] / total.read:.0%}" if total.read else "",
        "by_cost": by_cost,
        "bars": chart,
        "chart": {"width": days * BAR_WIDTH, "height": CHART_HEIGHT},
        "busiest": max(chart, key=lambda bar: bar.height),
        "purposes": lines(found["by_purpose"], "purpose"),
        "models": lines(found["by_model"], "model"),
        "tools": tool_lines(found["tools"]),
    }
    return render(request, "agent/usage.html", context)


@never_cache
@require_GET
def grants(request: SignedInRequest) -> HttpResponse:
    """The list for a page: what is allowed in `?conversation=` and always, or all of it."""
    return _grants(request, request.GET.get("conversation", ""))


@require_POST
def grant_take_back(request: SignedInRequest, grant_id: str) -> HttpResponse:
    """The next such call asks again; answers with the list that is left, or the settings page."""
    try:
        grant_remove(user_id=request.user.pk, grant_id=grant_id)
    except NotFound as error:
        raise Http404 from error
    if not request.headers.get("HX-Request"):
        return redirect("accounts:settings")
    return _grants(request, request.POST.get("conversation", ""))


def _grants(request: SignedInRequest, conversation: str) -> HttpResponse:
    try:
        only = parse_id(conversation) if conversation else None
    except NotFound as error:
        raise Http404 from error
    found = grants_for(request.user.pk, only)
    return render(request, "agent/grants.html", {"grants": found, "conversation": conversation})
