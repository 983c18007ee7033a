"""The sidebar's conversations, pinned ones first, under the dates they were last used on; and what a search found in them."""

import re
from collections.abc import Iterable
from datetime import date, timedelta
from functools import cache
from itertools import groupby
from typing import TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django import template
from django.template import Context
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.html import conditional_escape, format_html_join
from django.utils.safestring import SafeString

from apps.chat.conversations.folders import folders_listed
from apps.chat.conversations.selectors import conversations_page, has_archived
from apps.chat.models import Conversation

register = template.Library()

ID, TITLE = str(UUID(int=1)), "the-title-of-a-conversation"
"""Stand in a menu until it is some conversation's."""
SHORT_WORD = 3
"""Words of fewer letters are not marked beside longer ones."""


class Group(TypedDict):
    label: str
    conversations: list[Conversation]


@register.simple_tag
def conversation_groups(
    conversations: Iterable[Conversation] | None, time_zone: str | None = ""
) -> list[Group]:
    """Groups in the order given (pinned, then newest first; what a search found is one); days are those of `time_zone`, UTC where it is unknown."""
    zone = _zone(time_zone)
    today = timezone.now().astimezone(zone).date()

    def label(item: Conversation) -> str:
        if item.said:
            return "Found"
        if item.pinned and not item.archived:
            return "Pinned"
        return date_label(item.updated_at.astimezone(zone).date(), today)

    labelled = groupby(conversations or [], key=label)
    return [Group(label=label, conversations=list(items)) for label, items in labelled]


@register.simple_tag(takes_context=True)
def recent_conversations(context: Context) -> dict[str, object]:
    """The first page of them, for pages that have something else to show."""
    user_id = context["request"].user.pk
    rows, has_more = conversations_page(user_id)
    return {
        "rows": rows,
        "has_more": has_more,
        "archived": has_archived(user_id),
        "folders": folders_listed(user_id),
    }


@register.simple_tag
def conversation_menu(conversation: Conversation, title: str, place: str) -> SafeString:
    """The menu of a conversation, as a row has it; `place` tells one of the page from one of the sidebar. The menus of a
    page differ in so little that each kind is rendered once."""
    menu = _menu(place, conversation.pinned, conversation.archived)
    return SafeString(menu.replace(ID, str(conversation.id)).replace(TITLE, conditional_escape(title)))


@cache
def _menu(place: str, pinned: bool, archived: bool) -> str:
    values = {"place": place, "pinned": pinned, "archived": archived, "id": ID, "title": TITLE}
    return render_to_string("chat/_conversation_menu.html", values)


@register.filter
def marked(text: str, query: str) -> SafeString:
    """A text with what was searched for in `<mark>`: the query as it stands, else words that begin with one of its own."""
    found = re.compile(re.escape(query.strip()), re.IGNORECASE) if query.strip() else None
    if not found or not found.search(text):
        words = re.findall(r"\w+", query)
        words = [word for word in words if len(word) >= SHORT_WORD] or words
        if not words:
            return conditional_escape(text)
        found = re.compile(rf"\b(?:{'|'.join(map(re.escape, words))})\w*", re.IGNORECASE)
    pieces, end = [], 0
    for match in found.finditer(text):
        pieces += [(text[end : match.start()], match[0])]
        end = match.end()
    return format_html_join("", "{}<mark>{}</mark>", pieces) + conditional_escape(text[end:])


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
