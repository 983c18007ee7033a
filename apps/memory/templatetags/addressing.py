"""Notes as their owner reads them."""

from datetime import date, timedelta

from django import template
from django.utils import timezone

from apps.core.addressing import addressed
from apps.core.templatetags.dates import formatted
from apps.core.text import revealed, truncated
from apps.core.unmarked import unmarked
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
register.filter("revealed", revealed)
register.filter(unmarked)


LONG_CHARS = 500
LONG_LINES = 8
SIGNALS = {
    "meaning": "meaning",
    "keywords": "words",
    "answer": "answers the question",
    "surroundings": "what stands around it",
    "encoder": "meaning, by the encoder",
    "encoder_surroundings": "what stands around it, by the encoder",
    "name": "a name",
    "date": "the date",
}


@register.filter
def clamped(text: str) -> str:
    """As much of a text as a list shows, without the signs of Markdown: LONG_LINES lines, LONG_CHARS characters."""
    plain = unmarked(text)
    return truncated("\n".join(_beginning(plain)), LONG_CHARS) if _is_long(plain) else plain


@register.filter
def is_long(text: str) -> bool:
    """Whether a list shows but the beginning of a text."""
    return _is_long(unmarked(text))


def _is_long(text: str) -> bool:
    return len(text) > LONG_CHARS or text.count("\n") >= LONG_LINES


def _beginning(text: str) -> list[str]:
    lines = text[: LONG_CHARS + 1].split("\n")
    return lines[:LONG_LINES] + (["…"] if len(lines) > LONG_LINES else [])


@register.filter
def signal(name: str) -> str:
    """Name of a part of a search's score."""
    kind, _, words = name.partition(":")
    return f"{kind} “{words}”" if words else SIGNALS.get(name, name.replace("_", " "))


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
    return "Yesterday" if day == today - timedelta(days=1) else formatted(day, "l j F")
