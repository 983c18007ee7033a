"""The page of usage, and what the user has allowed for more than one call."""

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from datetime import date, datetime, time, timedelta
from operator import add
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.agent.selectors import usage_summary
from apps.agent.services import grant_remove, grants_for
from apps.agent.templatetags.usage_figures import money
from apps.agent.tools.base import tool_title
from apps.core.errors import NotFound
from apps.core.http.htmx import is_fragment
from apps.core.ids import parse_id

PURPOSES = {
    "chat": "Conversations",
    "title": "Titles of conversations",
    "summary": "Summing up long conversations",
    "gate": "Remembering by itself",
    "extraction": "Remembering by itself",
    "occasions": "Remembering by itself",
    "expansion": "Deep memory",
    "synthesis": "Deep memory",
    "builder": "Building capabilities",
    "proxy": "Other programs, by the Messages proxy",
    "connection_test": "Testing the connection",
}
BAR_WIDTH, CHART_HEIGHT, LEAST_HEIGHT = 10, 100, 1.5


@dataclass(frozen=True, slots=True)
class UsageLine:
    """Usage of one purpose, model, tool or day."""

    label: str
    calls: int
    failed: int
    read: int = 0  # tokens, cached ones too
    written: int = 0
    cost: float = 0  # US dollars

    @classmethod
    def of(cls, row: dict[str, Any], label: str = "") -> "UsageLine":
        """A line of a row of `usage_summary`."""
        read = row["input_tokens"] + row["cache_read_tokens"] + row["cache_write_tokens"]
        return cls(label, row["calls"], row["failed"], read, row["output_tokens"], row["cost_usd"])

    def __add__(self, other: "UsageLine") -> "UsageLine":
        _, *mine = astuple(self)
        _, *theirs = astuple(other)
        return UsageLine(self.label, *map(add, mine, theirs))


def lines(rows: Iterable[dict[str, Any]], key: str) -> list[UsageLine]:
    """The rows of `usage_summary` under their labels, those of one label added up, the most read first."""
    found: dict[str, UsageLine] = {}
    for row in rows:
        new = UsageLine.of(row, PURPOSES.get(row[key], row[key]) if key == "purpose" else str(row[key]))
        found[new.label] = found[new.label] + new if new.label in found else new
    return sorted(found.values(), key=lambda line: (-(line.read + line.written), line.label))


@dataclass(frozen=True, slots=True)
class Bar:
    """A day of the chart, in the units of its view box; `height` is 0 for a day without use."""

    day: date
    words: str
    x: int
    y: float
    height: float
    width: int = BAR_WIDTH - 2


def bars(rows: Iterable[dict[str, Any]], first: date, days: int, *, by_cost: bool) -> list[Bar]:
    """One bar for each day from `first` on, as high as its share of the highest."""
    by_day = {row["day"]: UsageLine.of(row) for row in rows}
    values = {day: (line.cost if by_cost else line.read + line.written) for day, line in by_day.items()}
    highest = max(values.values(), default=0) or 1
    chart = []
    for place in range(days):
        day = first + timedelta(days=place)
        value = values.get(day, 0)
        height = max(LEAST_HEIGHT, CHART_HEIGHT * value / highest) if value else 0.0
        words = money(value) if by_cost else f"{value:,.0f} tokens"
        chart.append(
            Bar(day, words, place * BAR_WIDTH + 1, round(CHART_HEIGHT - height, 2), round(height, 2))
        )
    return chart


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
    total = UsageLine.of(found["total"])
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
        "tools": [
            UsageLine(tool_title(row["name"]), row["calls"], row["failed"]) for row in found["tools"]
        ],
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
    if not is_fragment(request):
        return redirect("accounts:settings")
    return _grants(request, request.POST.get("conversation", ""))


def _grants(request: SignedInRequest, conversation: str) -> HttpResponse:
    try:
        only = parse_id(conversation) if conversation else None
    except NotFound as error:
        raise Http404 from error
    found = grants_for(request.user.pk, only)
    return render(request, "agent/grants.html", {"grants": found, "conversation": conversation})
