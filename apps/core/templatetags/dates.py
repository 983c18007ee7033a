"""Times as people write them, in the time zone of whoever looks."""

from datetime import date, datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

MINUTE, HOUR, DAY = 60, 3_600, 86_400
# Up to so many seconds an age is told in these units.
AGES = (
    (HOUR, MINUTE, "minute"),
    (DAY, HOUR, "hour"),
    (7 * DAY, DAY, "day"),
    (28 * DAY, 7 * DAY, "week"),
)


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


@register.filter
def ago(value: datetime | None) -> SafeString | str:
    """How long ago in its largest unit, from "just now" to "2 weeks ago", as such a `<time>`; older: the day."""
    return _element(value, _ago(value)) if value is not None else ""


def _ago(value: datetime) -> str:
    seconds = (timezone.now() - value).total_seconds()
    if seconds < MINUTE:
        return "just now"
    for limit, unit, name in AGES:
        if seconds < limit:
            count = int(seconds // unit)
            return f"{count} {name}{'' if count == 1 else 's'} ago"
    return day(value)


def _element(value: datetime, words: str) -> SafeString:
    local = timezone.localtime(value)
    whole = date_format(local, "l j F Y, H:i:s")
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', local.isoformat("T", "seconds"), whole, words
    )


def _day(day: date, today: date) -> str:
    if day == today:
        return "today"
    if day == today - timedelta(days=1):
        return "yesterday"
    return date_format(day, "j F" if day.year == today.year else "j F Y")
