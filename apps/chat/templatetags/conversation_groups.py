"""The sidebar's conversations under the dates they were last used on."""

from collections.abc import Iterable
from datetime import date, timedelta
from itertools import groupby
from typing import TypedDict
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import template
from django.template import Context
from django.utils import timezone

from apps.chat.conversations.selectors import conversations_page
from apps.chat.models import Conversation

register = template.Library()


class Group(TypedDict):
    label: str
    conversations: list[Conversation]


@register.simple_tag
def conversation_groups(
    conversations: Iterable[Conversation] | None, time_zone: str | None = ""
) -> list[Group]:
    """Groups in the order given (newest first); days are those of `time_zone`, UTC where it is unknown."""
    zone = _zone(time_zone)
    today = timezone.now().astimezone(zone).date()
    labelled = groupby(
        conversations or [], key=lambda item: date_label(item.updated_at.astimezone(zone).date(), today)
    )
    return [Group(label=label, conversations=list(items)) for label, items in labelled]


@register.simple_tag(takes_context=True)
def recent_conversations(context: Context) -> dict[str, object]:
    """The first page of them, for pages that have something else to show."""
    rows, has_more = conversations_page(context["request"].user.pk)
    return {"rows": rows, "has_more": has_more}


def date_label(day: date, today: date) -> str:
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - timedelta(days=7):
        return "Last 7 days"
    if day > today - timedelta(days=30):
        return "Last 30 days"
    return f"{day:%B}" if day.year == today.year else f"{day:%B %Y}"


def _zone(name: str | None) -> ZoneInfo:
    try:
        return ZoneInfo(name or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return ZoneInfo("UTC")
