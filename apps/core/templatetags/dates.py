"""Times as people write them, in the time zone of whoever looks."""

from datetime import date, datetime, timedelta
from functools import lru_cache

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def when(moment: datetime | None) -> str:
    """ "today, 14:05", "yesterday, 09:10", "5 May, 14:05", or with the year where it is another one; "" for none."""
    if moment is None:
        return ""
    local = timezone.localtime(moment)
    return f"{_day(local.date(), timezone.localdate())}, {local:%H:%M}"


@register.filter
def day(moment: datetime | None) -> str:
    """The same without the time of day."""
    return _day(timezone.localtime(moment).date(), timezone.localdate()) if moment is not None else ""


@register.filter
def moment(value: datetime | None) -> SafeString | str:
    """`when` as a `<time>` that tells the whole date to whoever points at it; "" for none."""
    return _element(value, when(value)) if value is not None else ""


@register.filter
def on_day(value: datetime | None) -> SafeString | str:
    """`day` as such a `<time>`."""
    return _element(value, day(value)) if value is not None else ""


def _element(value: datetime, words: str) -> SafeString:
    local = timezone.localtime(value)
    whole = f"{formatted(local.date(), 'l j F Y')}, {local:%H:%M:%S}"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', local.isoformat("T", "seconds"), whole, words
    )


@lru_cache(maxsize=1_000)
def formatted(day: date, form: str) -> str:
    """A date in one of Django's formats. That takes a tenth of a millisecond, and a page has dozens: they are kept."""
    return date_format(day, form)


def _day(day: date, today: date) -> str:
    if day == today:
        return "today"
    if day == today - timedelta(days=1):
        return "yesterday"
    return formatted(day, "j F" if day.year == today.year else "j F Y")
