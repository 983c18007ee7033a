"""The page of usage: what the models read, wrote and cost, and which tools were used."""

from datetime import datetime, time, timedelta

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from apps.accounts.access import SignedInRequest
from apps.agent.selectors import usage_summary
from apps.agent.usage_figures import BAR_WIDTH, CHART_HEIGHT, bars, lines, money, tool_lines, total_line

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
