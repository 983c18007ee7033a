"""Days and events as the timeline shows them."""

from datetime import date, timedelta

from django import template
from django.utils import timezone
from django.utils.formats import date_format

ICONS = {"saved": "plus", "changed": "edit", "replaced": "retry", "removed": "trash", "restored": "undo"}

register = template.Library()


@register.filter
def event_icon(group: str) -> str:
    """The icon of a group of events."""
    return ICONS[group]


@register.filter
def weekday(day: date) -> str:
    """ "Today", "Yesterday", "Saturday 17 May"."""
    today = timezone.localdate()
    if day == today:
        return "Today"
    return "Yesterday" if day == today - timedelta(days=1) else date_format(day, "l j F")
