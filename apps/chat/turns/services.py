"""A user's actions on a turn: start one, stop it, answer it. The runner does the rest.

Every function commits before it returns; the caller then calls `Scheduler.schedule` so that the change
is taken up at once (a sweep finds it otherwise).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.selectors import preferences_for
from apps.accounts.services import preferences_update
from apps.agent.services import grant_add, toolcall_answer, toolcall_decide
from apps.capabilities.runs.execution import reach_holds
from apps.chat.attachments.blocks import references
from apps.chat.attachments.selectors import ids_in
from apps.chat.attachments.services import attachments_take
from apps.chat.conversations.selectors import conversation_get
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn, TurnStatus
from apps.chat.titles import heuristic_title
from apps.chat.turns.branches import turn_replace
from apps.chat.turns.store import position_next
from apps.core.db.prepared import prepared
from apps.core.db.writing import insert_all, update_all
from apps.core.errors import Conflict, InvalidInput, IzzyError, NotFound
from apps.core.ids import parse_id
from apps.core.text import canonical_json, clean_text, is_yes
from apps.memory.capture.windows import windows_hasten_others

MAX_MESSAGE_CHARS = 100_000
MAX_CLIENT_ID = 64
MAX_QUEUED = 20
LOOK = ("Please look at the attached file.", "Please look at the attached files.")
"""Stands for the words of a message that has none: what a file is called, others may have chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A stored message and the turn that will answer it; `repeated` when its client had sent it before."""

    conversation_id: UUID
    turn_id: UUID
    message_id: UUID
    repeated: bool = False


def message_send(
    *,
    user_id: UUID,
    text: object,
    conversation: object = None,
    client_id: object = "",
    replaces: object = None,
    use_memory: bool | None = None,
    attachments: object = None,
    spoken: bool = False,
) -> Sent:
    """Stores the user's message with a queued turn, in a new conversation where none is named; `use_memory=None` is as preferred.
    With `replaces`, the id of a message of theirs, it takes the place of that one and all after it, which stay as a version.
    `attachments` are ids of files that stand beside it; None are those of the replaced message. With some the text may be empty.
    `spoken` says that the user said it aloud: where they prefer so, the model is asked for an answer to listen to.

    `client_id` is the client's own name for the message. InvalidInput or TooLarge (100,000 characters) for the text, NotFound for
    the conversation or the replaced message, Conflict `turn_running` when something is replaced while a turn is queued or
    running, and `too_many_queued` when 20 messages wait already.
    """
    words = clean_text(text, field="text", max_chars=MAX_MESSAGE_CHARS, allow_empty=bool(attachments))
    name = clean_text(client_id or "", field="client_id", max_chars=MAX_CLIENT_ID, allow_empty=True)

    def store() -> Sent:
        if conversation is None:
            if replaces is not None:
                raise InvalidInput(
                    "Name the conversation of the message to replace.", field="conversation"
                )
            place = conversation_create(user_id=user_id, use_memory=use_memory)
        else:
            place = conversation_get(user_id, conversation, lock=True)
        _check_queue(place)
        if not _any_turn(place.id):
            windows_hasten_others(user_id, place.id, timezone.now())
        replaced = None
        if replaces is not None:
            replaced = _own_messages(place).filter(id=parse_id(replaces)).first()
            if replaced is None:
                raise NotFound("There is no message of yours with this id in this conversation.")
        had = ids_in(replaced.blocks) if replaced is not None else []
        files = had
        if attachments is not None:
            files = attachments_take(user_id, place, attachments, had=had)
        return _turn_create(place, name, words or LOOK[len(files) > 1], replaced, files, spoken=spoken)

    return _once(user_id, name, store)


def turn_retry(
    *, user_id: UUID, conversation_id: object, client_id: object = "", replaces: object = None
) -> Sent:
    """Sends the newest user message again; its old answer stays as a version. Errors as for `message_send`.

    `replaces` is the id of the message that is meant: Conflict `not_newest` where that is not the newest any more.
    """
    name = clean_text(client_id or "", field="client_id", max_chars=MAX_CLIENT_ID, allow_empty=True)

    def store() -> Sent:
        conversation = conversation_get(user_id, conversation_id, lock=True)
        _check_queue(conversation)
        newest = _own_messages(conversation).last()
        if newest is None:
            raise Conflict("There is no message to send again.", code="nothing_to_retry")
        if replaces is not None and newest.id != parse_id(replaces):
            raise Conflict(
                "Another message has been sent here since: only the newest can be answered again.",
                code="not_newest",
            )
        spoken = newest.turn is not None and newest.turn.spoken
        files = ids_in(newest.blocks)
        return _turn_create(conversation, name, newest.text, newest, files, spoken=spoken)

    return _once(user_id, name, store)


@transaction.atomic
def turn_stop(*, user_id: UUID, conversation_id: object) -> int:
    """Asks for the running or waiting turn to stop, or where there is none for the queued ones.

    Returns how many were asked. What is queued behind a running turn is answered after it stopped.
    """
    conversation = conversation_get(user_id, conversation_id, lock=True)
    begun = conversation.turns.filter(state__in=[TurnStatus.RUNNING, TurnStatus.WAITING])
    asked = begun.update(stop_requested=True)
    return asked or conversation.turns.filter(state=TurnStatus.QUEUED).update(stop_requested=True)


@transaction.atomic
def question_answer(*, user_id: UUID, tool_call_id: object, text: object) -> UUID:
    """Records the answer to a question; returns its conversation. Errors as for `toolcall_answer`."""
    call = toolcall_answer(user_id=user_id, tool_call_id=tool_call_id, text=text)
    return _conversation_of(call.conversation_id)


@transaction.atomic
def approval_decide(*, user_id: UUID, tool_call_id: object, decision: object) -> UUID:
    """Records the yes or no to a tool call; returns its conversation. Errors as for `toolcall_decide`.

    `decision` is what `is_yes` takes; or a yes that lasts, as the call was offered with it, else Conflict (`not_always`):
    "conversation" and "always" hold for calls of the same reach, "always" may else become the user's setting for the tool.
    """
    lasts = decision in ("conversation", "always")
    call = toolcall_decide(
        user_id=user_id, tool_call_id=tool_call_id, approved=lasts or is_yes(decision)
    )
    place = _conversation_of(call.conversation_id)
    if lasts:
        turns = Turn.objects.for_user(user_id).filter(id__in=[call.turn_id])
        asked = [ask for asks in turns.values_list("waiting_for", flat=True) for ask in asks]
        offered: dict[str, Any] = next((ask for ask in asked if ask["id"] == str(call.id)), {})
        if reach := offered.get("reach"):
            only_here = place if decision == "conversation" else None
            if reach_holds(
                user_id, reach
            ):  # else the call fails and asks anew, with the reach as it is now
                grant_add(user_id=user_id, reach=reach, conversation_id=only_here)
        elif offered.get("always") and decision == "always":
            set_before = preferences_for(user_id).tool_approval
            preferences_update(user_id=user_id, tool_approval=set_before | {call.name: "allow"})
        else:
            raise Conflict("This can be allowed for this call alone.", code="not_always")
    return place


def _conversation_of(conversation_id: UUID | None) -> UUID:
    if conversation_id is None:
        raise NotFound("This tool call belongs to no conversation.")
    return conversation_id


def _once(user_id: UUID, client_id: str, store: Callable[[], Sent]) -> Sent:
    """Returns what was sent under `client_id` before, even by a process storing it right now; else what `store` makes."""
    if client_id and (sent := _sent_before(user_id, client_id)) is not None:
        return sent
    try:
        with transaction.atomic():
            return store()
    except (
        IntegrityError,
        IzzyError,
    ):  # The other one came first, and this one would be too much or too late.
        if not client_id or (sent := _sent_before(user_id, client_id)) is None:
            raise
        return sent


def _sent_before(user_id: UUID, client_id: str) -> Sent | None:
    # That it is not empty is said again, for the index, which holds only such.
    turn = _turn_named.first(user_id, client_id)
    if turn is None:
        return None
    message_id = turn.messages.filter(role=Role.USER, kind=MessageKind.TEXT).values_list(
        "id", flat=True
    )[0]
    return Sent(
        conversation_id=turn.conversation_id, turn_id=turn.id, message_id=message_id, repeated=True
    )


@prepared
def _turn_named(user_id: UUID, client_id: str) -> QuerySet[Turn]:
    return Turn.objects.for_user(user_id).filter(client_id=client_id).exclude(client_id="")


@prepared
def _queued(conversation_id: UUID) -> QuerySet[Turn, UUID]:
    rows = Turn.objects.unscoped().filter(conversation_id=conversation_id, state=TurnStatus.QUEUED)
    return rows.values_list("pk", flat=True)


@prepared
def _any_turn(conversation_id: UUID) -> QuerySet[Turn, UUID]:
    rows = Turn.objects.unscoped().filter(conversation_id=conversation_id)
    return rows.values_list("pk", flat=True)[:1]


def _check_queue(conversation: Conversation) -> None:
    if conversation.session:
        raise Conflict("This conversation was ingested; it cannot be continued here.", code="read_only")
    if len(_queued(conversation.id)) >= MAX_QUEUED:
        raise Conflict("Too many messages are waiting in this conversation.", code="too_many_queued")


def _own_messages(conversation: Conversation) -> QuerySet[Message]:
    return conversation.messages.filter(
        role=Role.USER, kind=MessageKind.TEXT, superseded_by=None
    ).order_by("position")


def _names_anew(conversation: Conversation, replaced: Message, text: str) -> bool:
    """Whether these are first words of the conversation in the place of those that it is called by."""
    if replaced.text == text or conversation.title_by_user:
        return False
    return not _own_messages(conversation).filter(position__lt=replaced.position).exists()


def _turn_create(
    conversation: Conversation,
    client_id: str,
    text: str,
    replaced: Message | None,
    files: Sequence[UUID],
    *,
    spoken: bool,
) -> Sent:
    """A queued turn with the user's message and the files beside it, in place of `replaced` and all after it."""
    turn = Turn(
        user_id=conversation.user_id,
        conversation=conversation,
        position=position_next(conversation.id),
        client_id=client_id,
        attached=bool(files),
        spoken=spoken,
    )
    insert_all([turn])
    if replaced is not None:
        turn_replace(conversation, replaced, turn, text)
    conversation.updated_at = timezone.now()
    if not conversation.title or (replaced and _names_anew(conversation, replaced, text)):
        conversation.title = heuristic_title(text)
    conversation.archived = False  # who writes in it wants it in the list again
    values = [conversation.updated_at, conversation.title, conversation.archived]
    update_all(Conversation, ("updated_at", "title", "archived"), [(conversation.pk, values)])
    said: list[dict[str, Any]] = [{"type": "text", "text": text}]
    message = Message(
        user_id=conversation.user_id,
        conversation=conversation,
        turn=turn,
        position=turn.position,
        role=Role.USER,
        blocks=canonical_json([*references(files), *said] if files else said),
        text=text,
        speaker=Role.USER,
    )
    insert_all([message])
    return Sent(conversation_id=conversation.id, turn_id=turn.id, message_id=message.id)
