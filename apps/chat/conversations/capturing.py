"""Hands what was said to memory, to be read for what is worth remembering: each message once.

Only `Message.text` goes: what people read. Tool output, system text and the notes that Izzy put beside a message are
in other columns. A message whose `captured` is true has been handed over, or is not to be.
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from itertools import chain, islice
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.selectors import preferences_for
from apps.agent.selectors import conversation_untrusted
from apps.chat.conversations.selectors import shown_untrusted
from apps.chat.models import OPEN_STATES, Conversation, Message, MessageKind, Role, Turn
from apps.core.ids import parse_id
from apps.core.quotes import quotes_others
from apps.memory.capture.windows import (
    Utterance,
    conversation_tainted,
    taint_note,
    windows_add,
    windows_hasten,
)
from apps.memory.models import Trust

logger = logging.getLogger(__name__)
UNCAPTURED_AGE = timedelta(minutes=1)
SWEEP_BATCH = 1000
BEFORE = 4
"""Messages before the new ones, from whose end a window's overlap is taken."""
SHOWN_AT_MOST = 200


@transaction.atomic
def turn_capture(turn_id: UUID) -> None:
    """Hands over what was said in the turn."""
    _messages_capture(Message.objects.unscoped().filter(turn_id=turn_id, captured=False))


def conversation_left(conversation_id: UUID) -> None:
    """Nobody looks at the conversation any more: what was said in it is read now."""
    conversation = Conversation.objects.unscoped().filter(id=conversation_id).first()
    if conversation is not None:
        windows_hasten(user_id=conversation.user_id, conversation_id=conversation_id)


def messages_capture_pending() -> None:
    """Sweep: hands over what a crash left out, of turns that have ended. Conversation by conversation: one that cannot be
    read does not keep back the others, and nobody waits for all of them to be written."""
    left = Message.objects.unscoped().filter(captured=False, kind=MessageKind.TEXT)
    left = left.filter(created_at__lt=timezone.now() - UNCAPTURED_AGE).exclude(turn__state__in=OPEN_STATES)
    for conversation_id in left.order_by().values_list("conversation_id", flat=True).distinct():
        try:
            with transaction.atomic():
                _messages_capture(left.filter(conversation_id=conversation_id))
        except Exception:  # whatever is wrong with this one, it is tried again, and the others are read
            logger.exception("what was said in conversation %s was not handed to memory", conversation_id)


def _messages_capture(rows: QuerySet[Message]) -> None:
    """Hands the first of these messages of one conversation over and marks them, so many that they fit into one transaction. Call
    it inside one."""
    rows = rows.select_related("conversation", "turn").select_for_update(of=("self",))
    messages = list(rows.order_by("position")[:SWEEP_BATCH])
    by_people = [message for message in messages if not (message.turn and message.turn.said)]
    if by_people:
        conversation_capture(by_people[0].conversation, by_people)
    Message.objects.unscoped().filter(id__in=[message.id for message in messages]).update(captured=True)


def conversation_capture(
    conversation: Conversation,
    messages: Sequence[Message],
    *,
    extract: bool = True,
    at_once: bool = False,
    after_tools: bool = False,
) -> None:
    """Hands messages of one conversation over, in the order given; whoever calls it marks them as captured.

    Replaced messages are left out; so is everything without `extract`, in conversations without memory, and for users
    who switched capture off. `after_tools`: the assistant's words follow on tool output that is not among the messages.
    `at_once`: what does not fill a window does not wait for more.
    """
    user_id = conversation.user_id
    rows = [row for row in messages if row.text.strip() and row.superseded_by_id is None]
    known = conversation_tainted(user_id, conversation.id)
    read = (
        after_tools
        or conversation_untrusted(user_id=user_id, conversation_id=conversation.id)
        or shown_untrusted(user_id, conversation.id)
    )
    if not rows or not extract or not conversation.use_memory or not preferences_for(user_id).capture:
        if not known and (after_tools or any(quotes_others(row.text, row.role == Role.USER) for row in rows)):
            taint_note(user_id=user_id, conversation_id=conversation.id)
        return
    before = list(
        conversation.messages.filter(position__lt=rows[0].position, superseded_by=None, captured=True)
        .exclude(text="")
        .order_by("-position")[:BEFORE]
    )[::-1]
    said = _said([*before, *rows], tainted=known or read, shown=_shown(conversation))
    windows_add(
        user_id=user_id,
        conversation_id=conversation.id,
        messages=said[len(before) :],
        preceding=said[: len(before)],
        at_once=at_once,
        tainted=read,
    )


def _said(
    rows: Iterable[Message], *, tainted: bool, shown: Sequence[tuple[UUID | None, str]]
) -> list[Utterance]:
    """The messages as memory takes them. The assistant may repeat whatever the conversation held before: once that was
    others' words, its own are trusted no more than those."""
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


def _shown(conversation: Conversation) -> list[tuple[UUID | None, str]]:
    """The notes that Izzy put beside the turns of this conversation, as they read then."""
    turns = Turn.objects.owned_by(conversation.user_id).filter(conversation=conversation)
    newest = (
        turns.exclude(memories=[])
        .order_by("-position")
        .values_list("memories", flat=True)
        .iterator(chunk_size=50)
    )
    items = islice(chain.from_iterable(newest), SHOWN_AT_MOST)
    return [(parse_id(item["id"]), str(item["text"])) for item in items]
