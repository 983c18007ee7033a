"""Hands what was said to search, to be found, and to memory, to be read for what is worth remembering: each message once.

To memory only `Message.text` goes: what people read. Tool output, system text and the notes that Izzy put beside a message are
in other columns. A message whose `indexed` or `captured` is true has been handed over, or is not to be.
"""

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import chain
from typing import Any, TypeAlias
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.selectors import preferences_for
from apps.agent.selectors import conversation_untrusted
from apps.chat.conversations.selectors import memories_shown
from apps.chat.models import OPEN_STATES, Conversation, Message, MessageKind, Role
from apps.core.db.prepared import prepared, prepared_update
from apps.core.db.writing import precompute, users_of, writing_for
from apps.core.ids import parse_id
from apps.core.purging.trace import MARKER
from apps.core.quotes import quotes_others
from apps.memory.capture.windows import (
    Utterance,
    conversation_tainted,
    messages_waiting,
    taint_note,
    windows_add,
    windows_hasten,
    windows_withdraw,
)
from apps.memory.models import Trust
from apps.search.documents import Document, Source
from apps.search.services import documents_index, documents_prepare, documents_remove

logger = logging.getLogger(__name__)
INDEX_BATCH = 500
UNINDEXED_AGE = timedelta(minutes=1)
UNCAPTURED_AGE = timedelta(minutes=1)
SWEEP_BATCH = 1000
BEFORE = 4
"""Messages before the new ones, from whose end a window's overlap is taken."""
SHOWN_AT_MOST = 200
Shown: TypeAlias = tuple[UUID | None, str]
"""A note that was put beside what was said, and its text then."""


def document_of(message: Message) -> Document:
    """The message as search knows it."""
    return Document(
        source=Source.CONVERSATION,
        source_id=message.id,
        text=message.text,
        happened_at=message.created_at,
        conversation_id=message.conversation_id,
        session=message.conversation.session,
        position=message.position,
        speaker=message.speaker,
        external_id=message.external_id,
    )


def is_findable(message: Message) -> bool:
    """Whether search is to have it, as far as the row itself says; nothing is left of what a purge has removed."""
    in_force = message.superseded_by_id is None and message.text not in {"", MARKER}
    return in_force and message.conversation.use_memory


def turn_index(turn_id: UUID) -> None:
    """Makes what was said in the turn searchable, unless its conversation is one without memory."""
    messages_index(_not_indexed(turn_id))


@prepared
def _not_indexed(turn_id: UUID) -> QuerySet[Message]:
    rows = Message.objects.unscoped().filter(turn_id=turn_id, indexed=False)
    return rows.select_related("conversation")


def messages_index(messages: list[Message]) -> None:
    """Writes the passages of these messages (of any users) and marks them as done.

    A long text is cut and read before the transaction, which would hold up everybody else's meanwhile.
    """
    by_user: dict[UUID, list[Message]] = {}
    for message in messages:
        by_user.setdefault(message.user_id, []).append(message)
    for user_id, own in by_user.items():
        documents = [document_of(message) for message in own if is_findable(message)]
        with writing_for(user_id), precompute():
            documents_prepare(user_id=user_id, texts=[document.text for document in documents])
            with transaction.atomic():  # leaves out what was replaced, deleted or indexed meanwhile
                ids = [message.id for message in own]
                there = set(_to_index(ids))
                kept = [document for document in documents if document.source_id in there]
                documents_index(user_id=user_id, documents=kept, are_new=True)
                _note_indexed(ids)


@prepared
def _to_index(ids: list[UUID]) -> QuerySet[Message, UUID]:
    rows = Message.objects.unscoped().filter(pk__among=ids, superseded_by=None, indexed=False)
    return rows.filter(conversation__deleted_at=None).values_list("pk", flat=True)


@prepared_update
def _note_indexed(ids: list[UUID]) -> tuple[QuerySet[Message], dict[str, Any]]:
    return Message.objects.unscoped().filter(pk__among=ids), {"indexed": True}


def messages_leave(*, user_id: UUID, conversation_id: UUID, message_ids: Sequence[UUID]) -> None:
    """Takes messages that gave way to others out of search, and out of the windows that wait to be read."""
    documents_remove(user_id=user_id, source=Source.CONVERSATION, source_ids=message_ids)
    among = {"user_id": user_id, "conversation_id": conversation_id}
    unread = messages_waiting(**among, message_ids=message_ids)
    windows_withdraw(**among, message_ids=message_ids)
    # Chosen again, they are read: nobody has read them yet.
    Message.objects.unscoped().filter(id__in=unread).update(captured=False)


def messages_to_index() -> "QuerySet[Message]":
    """Messages of all users that search does not know yet."""
    return Message.objects.unscoped().filter(indexed=False)


def messages_to_capture() -> "QuerySet[Message]":
    """Messages of all users that were not handed to memory yet; one that gave way to another version waits for its return, and
    so does one whose conversation is deleted."""
    rows = Message.objects.unscoped().filter(captured=False, superseded_by=None)
    return rows.filter(conversation__deleted_at=None)


def messages_index_pending() -> None:
    """Sweep: indexes what a crash left out, of turns that have ended. A message that fails does not keep back others."""
    rows = (
        Message.objects.unscoped()
        .filter(indexed=False, kind=MessageKind.TEXT, created_at__lt=timezone.now() - UNINDEXED_AGE)
        .exclude(turn__state__in=OPEN_STATES)
        .select_related("conversation")
        .order_by("id")
    )
    batch = list(rows[:INDEX_BATCH])
    while batch:
        if not _indexed(batch):
            for message in batch:
                _indexed([message])
        batch = list(rows.filter(id__gt=batch[-1].id)[:INDEX_BATCH])


def _indexed(messages: list[Message]) -> bool:
    try:
        messages_index(messages)
    except Exception:  # whatever is wrong with one message, the others are to be found
        logger.exception("%d messages from %s on were not indexed", len(messages), messages[0].id)
        return False
    return True


@transaction.atomic
def turn_capture(turn_id: UUID) -> None:
    """Hands over what was said in the turn."""
    _messages_capture(_turn_not_captured(turn_id))


@prepared
def _turn_not_captured(turn_id: UUID) -> QuerySet[Message]:
    return _locked(messages_to_capture().filter(turn_id=turn_id))


def _locked(rows: QuerySet[Message]) -> QuerySet[Message]:
    """The first of the messages of one conversation, so many that they fit into one transaction."""
    rows = rows.select_related("conversation", "turn")
    return rows.select_for_update(of=("self",)).order_by("position")[:SWEEP_BATCH]


def conversation_left(conversation_id: UUID) -> None:
    """Nobody looks at the conversation any more: what was said in it is read now."""
    conversation = Conversation.objects.unscoped().filter(id=conversation_id).first()
    if conversation is not None:
        with writing_for(conversation.user_id):
            windows_hasten(user_id=conversation.user_id, conversation_id=conversation_id)


def messages_capture_pending() -> None:
    """Sweep: hands over what a crash left out, of turns that have ended. Conversation by conversation: one that cannot be
    read does not keep back the others, and nobody waits for all of them to be written."""
    left = messages_to_capture().filter(kind=MessageKind.TEXT)
    left = left.filter(created_at__lt=timezone.now() - UNCAPTURED_AGE).exclude(
        turn__state__in=OPEN_STATES
    )
    for _, own in users_of(left):
        for conversation_id in list(own.values_list("conversation_id", flat=True).distinct()):
            try:
                with transaction.atomic():
                    _messages_capture(list(_locked(left.filter(conversation_id=conversation_id))))
            except (
                Exception
            ):  # whatever is wrong with this one, it is tried again, and the others are read
                logger.exception(
                    "what was said in conversation %s was not handed to memory", conversation_id
                )


def _messages_capture(messages: Sequence[Message]) -> None:
    """Hands these messages of one conversation over and marks them, in the transaction that has locked them."""
    by_people = [message for message in messages if not (message.turn and message.turn.said)]
    if by_people:
        conversation_capture(by_people[0].conversation, by_people)
    _note_captured([message.id for message in messages])


@prepared_update
def _note_captured(ids: list[UUID]) -> tuple[QuerySet[Message], dict[str, Any]]:
    return Message.objects.unscoped().filter(pk__among=ids), {"captured": True}


def conversation_capture(
    conversation: Conversation,
    messages: Sequence[Message],
    *,
    extract: bool = True,
    at_once: bool = False,
    after_tools: bool = False,
    trusted: bool = True,
    shown: Sequence[Shown] = (),
) -> None:
    """Hands messages of one conversation over, in the order given; whoever calls it marks them as captured.

    Replaced messages are left out; so is everything without `extract`, in conversations without memory, and for users
    who switched capture off. `after_tools`: the assistant's words follow on tool output that is not among the messages.
    `at_once`: what does not fill a window does not wait for more. What is not `trusted` counts as others' words, the user's
    messages too. `shown` are notes that were put beside them outside of turns.
    """
    user_id = conversation.user_id
    rows = [row for row in messages if row.text.strip() and row.superseded_by_id is None]
    known = conversation_tainted(user_id, conversation.id)
    after_tools = after_tools or not trusted
    read = after_tools or conversation_untrusted(user_id=user_id, conversation_id=conversation.id)
    items = list(chain.from_iterable(memories_shown(user_id, conversation.id)))
    read = read or any(item.get("untrusted") for item in items)
    if not rows or not extract or not conversation.use_memory or not preferences_for(user_id).capture:
        if not known and (
            after_tools or any(quotes_others(row.text, row.role == Role.USER) for row in rows)
        ):
            taint_note(user_id=user_id, conversation_id=conversation.id)
        return
    before = _captured_before(conversation.id, rows[0].position)[::-1]
    beside = [(parse_id(item["id"]), str(item["text"])) for item in items[:SHOWN_AT_MOST]]
    said = _said([*before, *rows], tainted=known or read, shown=[*shown, *beside])
    if not trusted:
        said = [replace(each, trust=Trust.UNTRUSTED) for each in said]
    windows_add(
        user_id=user_id,
        conversation_id=conversation.id,
        messages=said[len(before) :],
        preceding=said[: len(before)],
        at_once=at_once,
        tainted=known or read,
    )


@prepared
def _captured_before(conversation_id: UUID, position: int) -> QuerySet[Message]:
    rows = Message.objects.unscoped().filter(conversation_id=conversation_id, position__lt=position)
    rows = rows.filter(superseded_by=None, captured=True).exclude(text="")
    return rows.order_by("-position")[:BEFORE]


def _said(rows: Iterable[Message], *, tainted: bool, shown: Sequence[Shown]) -> list[Utterance]:
    """The messages as memory takes them, with the notes that Izzy put beside the turns of the conversation, as they read then.

    The assistant may repeat whatever the conversation held before: once that was others' words, its own are trusted no
    more than those.
    """
    said = []
    for row in rows:
        own = row.role == Role.USER
        trust = Trust.USER if own else Trust.UNTRUSTED if tainted else Trust.ASSISTANT
        said.append(
            Utterance(
                message_id=row.id,
                role=row.role,
                speaker=row.speaker,
                text=row.text,
                said_at=row.created_at,
                position=row.position,
                trust=trust,
                shown=shown,
            )
        )
        tainted = tainted or (own and quotes_others(row.text))
    return said
