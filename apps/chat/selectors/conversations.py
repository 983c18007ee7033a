"""Reads of conversations: one, a page of them, and those that match a search."""

from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from apps.chat.models import Conversation, Message, MessageKind
from apps.core.errors import NotFound
from apps.core.ids import parse_id
from apps.search.documents import Scope, Source
from apps.search.selectors import search

CHAT_CHANNEL = "chat"
SEARCH_HITS = 40
SNIPPET_CHARS = 120

VISIBLE = Q(messages__kind=MessageKind.TEXT, messages__superseded_by=None) & ~Q(messages__text="")


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
    """The user's conversations, newest activity first; `channel=None` gives those of programs too."""
    found = Conversation.objects.for_user(user_id).order_by("-updated_at", "-id")
    return found if channel is None else found.filter(channel=channel)


def with_counts(conversations: QuerySet[Conversation]) -> QuerySet[Conversation]:
    """Adds `visible_messages`: how many messages a reader of the conversation sees."""
    return conversations.annotate(visible_messages=Count("messages", filter=VISIBLE))


@dataclass(frozen=True, slots=True)
class FoundConversation:
    """A conversation a search found; `snippet` is the passage that matched, "" where the title did."""

    conversation: Conversation
    snippet: str = ""


def conversations_search(user_id: UUID, query: str, *, limit: int = 30) -> list[FoundConversation]:
    """The user's own chats whose title contains the query, then those in which something like it was said."""
    own = conversations_for(user_id)
    found = {row.id: FoundConversation(row) for row in own.filter(title__icontains=query)[:limit]}
    hits = search(user_id, query, top_k=SEARCH_HITS, scope=Scope(sources=frozenset({Source.CONVERSATION})))
    snippets = {
        hit.conversation_id: " ".join(hit.text.split())[:SNIPPET_CHARS]
        for hit in reversed(hits)
        if hit.conversation_id
    }
    rows = {row.id: row for row in own.filter(id__in=snippets.keys())}
    for hit in hits:
        if hit.conversation_id in rows and hit.conversation_id not in found:
            found[hit.conversation_id] = FoundConversation(
                rows[hit.conversation_id], snippets[hit.conversation_id]
            )
    for message in _unindexed_matches(user_id, query, limit):
        found.setdefault(
            message.conversation_id, FoundConversation(message.conversation, message.text[:SNIPPET_CHARS])
        )
    return list(found.values())[:limit]


def _unindexed_matches(user_id: UUID, query: str, limit: int) -> list[Message]:
    """Matches in conversations without memory, whose messages are in no index."""
    rows = Message.objects.for_user(user_id).filter(
        conversation__use_memory=False, superseded_by=None, kind=MessageKind.TEXT, text__icontains=query
    )
    return list(rows.select_related("conversation").order_by("-created_at")[:limit])
