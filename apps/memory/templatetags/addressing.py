"""Notes as their owner reads them."""

from datetime import date, timedelta

from django import template
from django.utils import timezone
from django.utils.formats import date_format

from apps.memory.addressing import addressed
from apps.memory.models import Origin, Status

CAME = {
    Origin.USER: "added by you",
    Origin.ASSISTANT: "saved by Izzy",
    Origin.EXTRACTION: "noticed by Izzy",
    Origin.IMPORT: "brought in from elsewhere",
    Origin.API: "added by a program",
    Origin.MCP: "added by a program",
    Origin.FILE: "from a file",
}

BY = {
    Origin.USER: "by you",
    Origin.IMPORT: "with an import",
    Origin.API: "by a program",
    Origin.MCP: "by a program",
    Origin.FILE: "from a file",
}

register = template.Library()
register.filter("addressed", addressed)


@register.filter
def came(origin: str) -> str:
    """How a note came to be, after its date."""
    return CAME[Origin(origin)]


@register.filter
def by(origin: str) -> str:
    """Names the actor after what was done: "by you", "by Izzy"."""
    return BY.get(Origin(origin), "by Izzy")


@register.filter
def status(value: str) -> str:
    """Name of a status within a sentence."""
    return str(Status(value).label).lower()


@register.filter
def weekday(day: date) -> str:
    """ "Today", "Yesterday", "Saturday 17 May"."""
    today = timezone.localdate()
    if day == today:
        return "Today"
    return "Yesterday" if day == today - timedelta(days=1) else date_format(day, "l j F")
