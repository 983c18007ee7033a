"""Reads of conversations: one, a page of them, those that a search finds, their figures, and whose words the model reads in one."""

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet
from django.utils import timezone

from apps.agent.models import ToolCall
from apps.agent.selectors import ConversationTaint
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn
from apps.core.db.prepared import prepared
from apps.core.db.saying import says
from apps.core.errors import NotFound
from apps.core.ids import parse_id
from apps.core.unmarked import unmarked
from apps.search.documents import Scope, Source
from apps.search.selectors import passages_saying, search

CHAT_CHANNEL = "chat"
PAGE_SIZE = 40
SEARCH_HITS = 40
SNIPPET_CHARS = 120
LEAST_SCORE = 0.02
"""A passage below is not about what was searched for: six of seven right ones are above, a sixth of nonsense finds any."""
RECENT_CONVERSATIONS = 30
RECENT_MESSAGES = 200
"""So much is also looked through sign by sign."""


def conversation_get(user_id: UUID, conversation_id: object, *, lock: bool = False) -> Conversation:
    """The user's conversation, inside a transaction with a lock on its row. NotFound for a foreign, unknown or malformed id."""
    found = (_conversation_locked if lock else _conversation).first(user_id, parse_id(conversation_id))
    if found is None:
        raise NotFound("There is no conversation with this id.")
    return found


@prepared
def _conversation(user_id: UUID, conversation_id: UUID) -> QuerySet[Conversation]:
    return Conversation.objects.for_user(user_id).filter(id=conversation_id)


@prepared
def _conversation_locked(user_id: UUID, conversation_id: UUID) -> QuerySet[Conversation]:
    return Conversation.objects.for_user(user_id).filter(id=conversation_id).select_for_update()


def conversation_belongs(user_id: UUID, conversation_id: UUID) -> bool:
    """Whether there is such a conversation of this user."""
    return Conversation.objects.for_user(user_id).filter(id=conversation_id).exists()


def conversations_for(user_id: UUID, *, channel: str | None = CHAT_CHANNEL) -> QuerySet[Conversation]:
    """The user's conversations with their folders, newest activity first; `channel=None` gives those of programs too.

    Without the definitions of their tools, some 30 KB each, which no list shows.
    """
    found = Conversation.objects.for_user(user_id).select_related("folder").defer("tools")
    found = found.order_by("-updated_at", "-id")
    return found if channel is None else found.filter(channel=channel)


def conversations_page(
    user_id: UUID, number: int = 1, *, first: int | None = None
) -> tuple[list[Conversation], bool]:
    """A page of the sidebar's list, counted from 1, with those from `first` on before it, and whether there are more. What is in
    a folder stands there instead, unless it is pinned."""
    begin, end = ((first or number) - 1) * PAGE_SIZE, number * PAGE_SIZE
    rows = _newest(user_id) if number == 1 else list(_beside(user_id)[begin : end + 1])
    return rows[: end - begin], len(rows) > end - begin


def _beside(user_id: UUID) -> QuerySet[Conversation]:
    return conversations_shown(user_id).filter(Q(folder=None) | Q(pinned=True))


@prepared
def _newest(user_id: UUID) -> QuerySet[Conversation]:
    return _beside(user_id)[: PAGE_SIZE + 1]


def conversations_shown(
    user_id: UUID, *, archived: bool = False, folder: UUID | None = None
) -> QuerySet[Conversation]:
    """The user's own chats as their list has them, pinned ones first, or the archived ones, which come by time alone; all or
    those of a folder."""
    rows = conversations_for(user_id).filter(archived=archived)
    rows = rows if folder is None else rows.filter(folder=folder)
    return rows if archived else rows.order_by("-pinned", "-updated_at", "-id")


def has_archived(user_id: UUID) -> bool:
    return bool(_archived(user_id))


@prepared
def _archived(user_id: UUID) -> QuerySet[Conversation, UUID]:
    return conversations_shown(user_id, archived=True).values_list("pk", flat=True)[:1]


def conversation_hidden(user_id: UUID, conversation_id: object) -> Conversation | None:
    """The user's conversation that was deleted and can still be brought back."""
    rows = Conversation.objects.unscoped().filter(user_id=user_id, deleted_at__gt=timezone.now())
    try:
        return rows.filter(id=parse_id(conversation_id)).first()
    except NotFound:
        return None


def messages_counted(user_id: UUID, conversation_ids: Collection[UUID]) -> dict[UUID, int]:
    """How many messages a reader of each of these conversations of the user sees; none where there are none.

    To be asked for one page of them: the messages are counted one by one.
    """
    rows = Message.objects.owned_by(user_id).filter(
        conversation_id__in=conversation_ids, kind=MessageKind.TEXT, superseded_by=None
    )
    return dict(rows.exclude(text="").order_by().values_list("conversation_id").annotate(Count("id")))


def taint_of(user_id: UUID, conversation_id: UUID) -> ConversationTaint:
    """For the turns of this conversation; it asks the database when it is asked."""
    return ConversationTaint(
        user_id=user_id,
        conversation_id=conversation_id,
        messages=partial(user_messages, user_id, conversation_id),
        shown_untrusted=partial(shown_untrusted, user_id, conversation_id),
    )


def user_messages(user_id: UUID, conversation_id: UUID) -> list[str]:
    """The user's texts in the conversation, answers to questions included, without those an edit or a retry replaced."""
    return _texts(user_id, conversation_id) + _answers(user_id, conversation_id)


@prepared
def _texts(user_id: UUID, conversation_id: UUID) -> QuerySet[Message, str]:
    messages = Message.objects.owned_by(user_id).filter(
        conversation_id=conversation_id, role=Role.USER, kind=MessageKind.TEXT, superseded_by=None
    )
    return messages.exclude(text="").values_list("text", flat=True)


@prepared
def _answers(user_id: UUID, conversation_id: UUID) -> QuerySet[ToolCall, str]:
    asked = ToolCall.objects.owned_by(user_id).filter(conversation_id=conversation_id, name="ask_user")
    return asked.exclude(answer="").values_list("answer", flat=True)


def shown_untrusted(user_id: UUID, conversation_id: UUID) -> bool:
    """Whether a note from an untrusted source was put beside a message of the conversation."""
    return any(
        item.get("untrusted") for items in memories_shown(user_id, conversation_id) for item in items
    )


@prepared
def memories_shown(user_id: UUID, conversation_id: UUID) -> QuerySet[Turn, list[dict[str, Any]]]:
    """The notes brought up beside each message of the conversation, newest first, where there were any."""
    turns = Turn.objects.owned_by(user_id).filter(conversation_id=conversation_id).exclude(memories=[])
    return turns.order_by("-position").values_list("memories", flat=True)


@prepared
def attached_turn(user_id: UUID, conversation_id: UUID) -> QuerySet[Turn, UUID]:
    """A turn with files beside its message, if the conversation ever had one: others' words, whatever became of the files."""
    turns = Turn.objects.owned_by(user_id).filter(conversation_id=conversation_id, attached=True)
    return turns.values_list("pk", flat=True)[:1]


@prepared
def attached_in(user_id: UUID, conversation_ids: list[UUID]) -> QuerySet[Turn, UUID]:
    """Those of the conversations that ever had one."""
    turns = Turn.objects.owned_by(user_id).filter(
        conversation__pk__among=conversation_ids, attached=True
    )
    return turns.order_by().values_list("conversation_id", flat=True).distinct()


class Snippet(NamedTuple):
    """The passage that a search found, and the message that it stands in; neither where the title was found."""

    text: str = ""
    message_id: UUID | None = None


def conversations_search(
    user_id: UUID, query: str, *, limit: int = 30, channel: str | None = CHAT_CHANNEL
) -> list[tuple[Conversation, Snippet]]:
    """The conversations whose title contains the query, then those in which it, or something like it, was said, with what was
    said: the user's own chats, those of another channel, or with `channel=None` all."""
    listed = conversations_for(user_id, channel=channel)
    found = {row.id: (row, Snippet()) for row in listed.filter(says("title", query))[:limit]}
    # What was said lately, then the newest passage with the very words, or words that begin with them.
    passages = passages_saying(user_id, query, source=Source.CONVERSATION)
    literally = _first(((each.conversation_id, each.text, each.source_id) for each in passages), query)
    snippets = (
        _best_passages(user_id, query) | _newest_messages(user_id, query, limit, channel) | literally
    )
    named = conversations_for(user_id, channel=None).filter(id__in=snippets).order_by()
    rows = {row.id: row for row in named if channel is None or row.channel == channel}
    for conversation_id, said in snippets.items():
        if conversation_id in rows:
            found.setdefault(conversation_id, (rows[conversation_id], said))
    return list(found.values())[:limit]


def _best_passages(user_id: UUID, query: str) -> dict[UUID, Snippet]:
    """The best passage of each conversation that is about the query, best first."""
    said = Scope(sources=frozenset({Source.CONVERSATION}))
    hits = search(user_id, query, top_k=SEARCH_HITS, scope=said, threshold=LEAST_SCORE)
    return _first(((hit.conversation_id, hit.text, hit.source_id) for hit in hits), query)


def _newest_messages(user_id: UUID, query: str, limit: int, channel: str | None) -> dict[UUID, Snippet]:
    """The newest messages that contain the query in whatever place, of the newest conversations: what full text does not
    know (the middle of a word, signs) and what it does not have (conversations without memory)."""
    rows = (
        conversations_for(user_id, channel=channel).order_by("-updated_at").values_list("id", flat=True)
    )
    places = {*rows[:RECENT_CONVERSATIONS], *rows.filter(use_memory=False)[:RECENT_CONVERSATIONS]}
    messages = Message.objects.owned_by(user_id).filter(
        conversation_id__in=places,
        position__gt=F("conversation__last_position") - RECENT_MESSAGES,
        superseded_by=None,
        kind=MessageKind.TEXT,
    )
    said = Q(text__icontains=query)  # SQLite knows the case of ASCII alone
    if not query.isascii():  # full text finds the others in whatever case, and much faster
        said |= Q(conversation__use_memory=False) & Q(says("text", query))
    messages = messages.filter(said)
    newest = messages.order_by("-created_at").values_list("conversation_id", "text", "id")[: limit * 2]
    return _first(newest, query)


def _first(said: Iterable[tuple[UUID | None, str, UUID]], query: str) -> dict[UUID, Snippet]:
    """A snippet of the first passage of each conversation, in their order: around the query's words, or the beginning."""
    found: dict[UUID, Snippet] = {}
    for conversation_id, text, message_id in said:
        if conversation_id is not None and conversation_id not in found:
            plain = " ".join(unmarked(text).split())
            at = plain.casefold().find(query.casefold())
            if at < 0 and query.casefold() in text.casefold():  # the query is or has such a sign
                plain = " ".join(text.split())
                at = plain.casefold().find(query.casefold())
            start = max(0, at - SNIPPET_CHARS // 3)
            if start:  # a word begins here, if one does
                start = plain.find(" ", start, at) + 1 or start
            end = start + SNIPPET_CHARS
            shown = f"{'…' * bool(start)}{plain[start:end]}{'…' * (end < len(plain))}"
            found[conversation_id] = Snippet(shown, message_id)
    return found


def chat_stats(user_id: UUID) -> dict[str, Any]:
    """`{conversations: {channel: n}, messages: {role: n}, turns: {state: n}}`."""
    channels = Conversation.objects.for_user(user_id).values_list("channel").annotate(n=Count("id"))
    said = Message.objects.for_user(user_id).filter(kind=MessageKind.TEXT, superseded_by=None)
    roles = dict(said.values_list("role").annotate(n=Count("id")).order_by())
    states = Turn.objects.for_user(user_id).values_list("state").annotate(n=Count("id")).order_by()
    return {
        "conversations": dict(channels.order_by("channel")),
        "messages": {role: roles.get(role, 0) for role in Role.values},
        "turns": dict(states),
    }
