"""Times as people write them, in the time zone of whoever looks."""

from datetime import date, datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.formats import date_format

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


def _day(day: date, today: date) -> str:
    if day == today:
        return "today"
    if day == today - timedelta(days=1):
        return "yesterday"
    return date_format(day, "j F" if day.year == today.year else "j F Y")
