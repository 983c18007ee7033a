"""Reads of conversations: one, a page of them, and those that match a search."""

from collections.abc import Collection
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, QuerySet

from apps.chat.models import Conversation, Message, MessageKind
from apps.core.errors import NotFound
from apps.core.ids import parse_id
from apps.search.documents import Scope, Source
from apps.search.selectors import search

CHAT_CHANNEL = "chat"
SEARCH_HITS = 40
SNIPPET_CHARS = 120
RELEVANT = 0.35
"""Below this relevance a passage is not about what was searched for."""


def conversation_get(user_id: UUID, conversation_id: object) -> Conversation:
    """The user's conversation. NotFound for a foreign, unknown or malformed id."""
    found = Conversation.objects.for_user(user_id).filter(id=parse_id(conversation_id)).first()
    if found is None:
        raise NotFound("There is no conversation with this id.")
    return found


def conversation_belongs(user_id: UUID, conversation_id: UUID) -> bool:
    """Whether there is such a conversation of this user."""
    return Conversation.objects.for_user(user_id).filter(id=conversation_id).exists()


def conversations_for(user_id: UUID, *, channel: str | None = CHAT_CHANNEL) -> QuerySet[Conversation]:
    """The user's conversations, newest activity first; `channel=None` gives those of programs too.

    Without the definitions of their tools, some 30 KB each, which no list shows.
    """
    found = Conversation.objects.for_user(user_id).defer("tools").order_by("-updated_at", "-id")
    return found if channel is None else found.filter(channel=channel)


def messages_counted(user_id: UUID, conversation_ids: Collection[UUID]) -> dict[UUID, int]:
    """How many messages a reader of each of these conversations of the user sees; none where there are none.

    To be asked for one page of them: the messages are counted one by one.
    """
    rows = Message.objects.owned_by(user_id).filter(
        conversation_id__in=conversation_ids, kind=MessageKind.TEXT, superseded_by=None
    )
    return dict(rows.exclude(text="").order_by().values_list("conversation_id").annotate(Count("id")))


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
    snippets = _said(user_id, query) | _said_literally(user_id, query, limit, channel)
    named = Conversation.objects.owned_by(user_id).filter(id__in=snippets).defer("tools")
    rows = {row.id: row for row in named if channel is None or row.channel == channel}
    for conversation_id, text in snippets.items():
        if conversation_id in rows:
            found.setdefault(conversation_id, FoundConversation(rows[conversation_id], text))
    return list(found.values())[:limit]


def _said(user_id: UUID, query: str) -> dict[UUID, str]:
    """The best passage of each conversation that is about the query, best first."""
    hits = search(user_id, query, top_k=SEARCH_HITS, scope=Scope(sources=frozenset({Source.CONVERSATION})))
    found: dict[UUID, str] = {}
    for hit in hits:
        if hit.conversation_id is not None and hit.relevance >= RELEVANT:
            found.setdefault(hit.conversation_id, _snippet(hit.text, query))
    return found


def _said_literally(user_id: UUID, query: str, limit: int, channel: str | None) -> dict[UUID, str]:
    """Messages that contain the very words, a beginning of one too; also where nothing is indexed (no memory)."""
    rows = Message.objects.for_user(user_id).filter(
        superseded_by=None, kind=MessageKind.TEXT, text__icontains=query
    )
    if channel is not None:
        rows = rows.filter(conversation__channel=channel)
    newest = rows.order_by("-created_at").values_list("conversation_id", "text")[: limit * 2]
    return {conversation_id: _snippet(text, query) for conversation_id, text in reversed(newest)}


def _snippet(text: str, query: str) -> str:
    """A line of the text around the query's words, or its beginning."""
    plain = " ".join(text.split())
    at = plain.casefold().find(query.casefold())
    start = max(0, at - SNIPPET_CHARS // 3)
    cut = plain[start : start + SNIPPET_CHARS]
    return f"{'…' if start else ''}{cut}{'…' if start + SNIPPET_CHARS < len(plain) else ''}"
