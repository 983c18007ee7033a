"""Pages of a long list, of which no more is counted than its reader may care for."""

from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet

AHEAD = 20
"""The number of pages behind the one that is asked for that are counted, and at least COUNTED rows."""
COUNTED = 1_000


def number_asked(asked: str | None) -> int:
    """The number of the page that an address asks for; 1 for what is none."""
    return int(asked) if asked and asked.isascii() and asked.isdecimal() and len(asked) < 7 else 1


class BoundedPaginator(Paginator):  # type: ignore[type-arg]
    """Counts rows to a bound: `count` is that bound where there are more."""

    def __init__(self, rows: "QuerySet[Any]", size: int, asked: str | None) -> None:
        super().__init__(rows, size)
        self._bound = max(COUNTED, (number_asked(asked) + AHEAD) * size)
        counted = rows.order_by().values("pk")[: self._bound + 1].count()
        self.more = counted > self._bound
        vars(self)["count"] = min(
            counted, self._bound
        )  # what the base class has a query over all rows for

    @property
    def said(self) -> str:
        """How many there are: `1,204`, `more than 1,000`."""
        return f"more than {self.count:,}" if self.more else f"{self.count:,}"


def page_of(rows: "QuerySet[Any]", size: int, asked: str | None) -> "Page[Any]":
    """The page that is asked for; the first for what is no number, the last for one beyond the end."""
    return BoundedPaginator(rows, size, asked).get_page(asked)
