"""Finds conversations by their titles and by what was said in them."""

from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F

from apps.chat.models import Conversation, Message, MessageKind
from apps.chat.selectors.conversations import CHAT_CHANNEL, conversations_for
from apps.search.documents import Scope, Source
from apps.search.selectors import passages_saying, search

SEARCH_HITS = 40
SNIPPET_CHARS = 120
LEAST_SCORE = 0.02
"""A passage below is not about what was searched for: six of seven right ones are above, a sixth of nonsense finds any."""
RECENT_CONVERSATIONS = 30
RECENT_MESSAGES = 200
"""So much is also looked through sign by sign."""


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """A conversation a search found; `snippet` is the passage that matched, "" where the title did."""

    conversation: Conversation
    snippet: str = ""


def conversations_search(
    user_id: UUID, query: str, *, limit: int = 30, channel: str | None = CHAT_CHANNEL
) -> list[FoundConversation]:
    """The conversations whose title contains the query, then those in which it, or something like it, was said: the user's
    own chats, those of another channel, or with `channel=None` all."""
    listed = conversations_for(user_id, channel=channel)
    found = {row.id: FoundConversation(row) for row in listed.filter(title__icontains=query)[:limit]}
    literally = _said_lately(user_id, query, limit, channel) | _said_literally(user_id, query)
    snippets = _said(user_id, query) | literally
    named = Conversation.objects.owned_by(user_id).filter(id__in=snippets).defer("tools")
    rows = {row.id: row for row in named if channel is None or row.channel == channel}
    for conversation_id, text in snippets.items():
        if conversation_id in rows:
            found.setdefault(conversation_id, FoundConversation(rows[conversation_id], text))
    return list(found.values())[:limit]


def _said(user_id: UUID, query: str) -> dict[UUID, str]:
    """The best passage of each conversation that is about the query, best first."""
    said = Scope(sources=frozenset({Source.CONVERSATION}))
    hits = search(user_id, query, top_k=SEARCH_HITS, scope=said, threshold=LEAST_SCORE)
    return _first(((hit.conversation_id, hit.text) for hit in hits), query)


def _said_literally(user_id: UUID, query: str) -> dict[UUID, str]:
    """The newest passage of each conversation that contains the very words, or words that begin with them."""
    said = passages_saying(user_id, query, source=Source.CONVERSATION)
    return _first(((each.conversation_id, each.text) for each in said), query)


def _said_lately(user_id: UUID, query: str, limit: int, channel: str | None) -> dict[UUID, str]:
    """The newest messages that contain the query in whatever place, of the newest conversations: what full text does not
    know (the middle of a word, signs) and what it does not have (conversations without memory)."""
    rows = conversations_for(user_id, channel=channel).order_by("-updated_at").values_list("id", flat=True)
    places = {*rows[:RECENT_CONVERSATIONS], *rows.filter(use_memory=False)[:RECENT_CONVERSATIONS]}
    messages = Message.objects.owned_by(user_id).filter(
        conversation_id__in=places,
        position__gt=F("conversation__last_position") - RECENT_MESSAGES,
        superseded_by=None,
        kind=MessageKind.TEXT,
        text__icontains=query,
    )
    newest = messages.order_by("-created_at").values_list("conversation_id", "text")[: limit * 2]
    return _first(newest, query)


def _first(said: Iterable[tuple[UUID | None, str]], query: str) -> dict[UUID, str]:
    """The snippet of the first passage of each conversation, in their order."""
    found: dict[UUID, str] = {}
    for conversation_id, text in said:
        if conversation_id is not None and conversation_id not in found:
            found[conversation_id] = _snippet(text, query)
    return found


def _snippet(text: str, query: str) -> str:
    """A line of the text around the query's words, or its beginning."""
    plain = " ".join(text.split())
    at = plain.casefold().find(query.casefold())
    start = max(0, at - SNIPPET_CHARS // 3)
    cut = plain[start : start + SNIPPET_CHARS]
    return f"{'…' if start else ''}{cut}{'…' if start + SNIPPET_CHARS < len(plain) else ''}"
