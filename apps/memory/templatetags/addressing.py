"""Notes as their owner reads them."""

from django import template

from apps.memory.addressing import addressed
from apps.memory.models import Origin

CAME = {
    Origin.USER: "added by you",
    Origin.ASSISTANT: "saved by Izzy",
    Origin.EXTRACTION: "noticed by Izzy",
    Origin.IMPORT: "brought in from elsewhere",
    Origin.API: "added by a program",
    Origin.MCP: "added by a program",
    Origin.FILE: "from a file",
}

register = template.Library()
register.filter("addressed", addressed)


@register.filter
def came(origin: str) -> str:
    """How a note came to be, after its date."""
    return CAME[Origin(origin)]
