"""Versions of a turn: an edited message, or an answer asked for anew, stands in the place of another turn, with a branch of the
conversation behind it. One branch is in force: the messages that no turn supersedes, in the order of their positions. All else
goes by that, so that the model, search, summaries, capture and readers see the branch in force alone.

Turns of one place share `Turn.place`, the position of the first of them. What a branch held when it was left says so by
`Message.branch`, the position of the turn with which it began; that turn chosen again brings back just these messages, with the
versions that were in force within it.
"""

from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.chat.conversations.handover import messages_index, messages_leave
from apps.chat.conversations.selectors import conversation_get
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn, TurnStatus
from apps.chat.summary.services import summary_cut
from apps.chat.turns.store import turn_close
from apps.core.errors import Conflict, NotFound
from apps.core.ids import parse_id

OPENING = (MessageKind.TEXT, MessageKind.NOTICE)
NOT_HERE = "There is no version with this id in this conversation."
BUSY = "Izzy is still answering. Stop it first."


def turn_replace(conversation: Conversation, first: Message, turn: Turn, text: str) -> None:
    """Puts a new turn with this text in the place of the one that `first` opened. Call it inside a transaction, with the conversation locked.

    The old one is a version from then on, unless it says the same as the new one and was never answered. Conflict
    (`turn_running`) while a turn is queued or running.
    """
    old = first.turn
    answered = old is not None and old.messages.filter(role=Role.ASSISTANT).exclude(text="").exists()
    if old is not None and (old.place or answered or first.text != text):
        turn.place = old.place or old.position
        Turn.objects.unscoped().filter(pk__in=[old.pk, turn.pk]).update(place=turn.place)
    branch_leave(conversation, first, turn)


def branch_leave(conversation: Conversation, first: Message, turn: Turn) -> None:
    """Takes `first` and what follows out of force, for `turn`; a turn that waits there ends as stopped."""
    busy = conversation.turns.filter(state__in=[TurnStatus.QUEUED, TurnStatus.RUNNING])
    if busy.exclude(id=turn.id).exists():
        raise Conflict(BUSY, code="turn_running")
    for waiting in conversation.turns.filter(state=TurnStatus.WAITING):
        turn_close(waiting, reason="stopped")
        waiting.state, waiting.ended_at, waiting.announced = TurnStatus.STOPPED, timezone.now(), False
        waiting.save(update_fields=["state", "ended_at", "announced"])
    left = conversation.messages.filter(superseded_by=None, position__gte=first.position)
    ids = list(left.values_list("id", flat=True))
    left.update(superseded_by=turn, branch=first.turn.position if first.turn else 0)
    summary_cut(conversation=conversation, position=first.position)
    messages_leave(user_id=conversation.user_id, conversation_id=conversation.id, message_ids=ids)


def branch_choose(*, user_id: UUID, conversation_id: object, turn_id: object) -> Turn:
    """Brings a version back, with all that followed it when it was left; the version in its place gives way. The one that is in
    force already is left as it is. Whoever calls it has the conversation scheduled then: its watchers hear of it by that.

    NotFound for a turn that is no version in this conversation, Conflict (`turn_running`) while a turn is queued or running.
    """
    with transaction.atomic():
        conversation = conversation_get(user_id, conversation_id, lock=True)
        turn = conversation.turns.filter(id=parse_id(turn_id)).exclude(place=0).first()
        if turn is None:
            raise NotFound(NOT_HERE)
        came = _choose(conversation, turn)
    for start in range(0, len(came), 500):
        rows = Message.objects.unscoped().filter(id__in=came[start : start + 500])
        messages_index(list(rows.select_related("conversation")))
    return turn


def _choose(conversation: Conversation, turn: Turn) -> list[UUID]:
    """The messages that came into force."""
    opening = _opening(conversation).filter(turn__place=turn.place).select_related("turn")
    by_turn = {message.turn_id: message for message in opening}
    wanted = by_turn.get(turn.pk)
    if wanted is None:
        raise NotFound(NOT_HERE)
    shown = next((each for each in by_turn.values() if each.superseded_by_id is None), None)
    if shown is wanted:
        return []
    came: list[UUID] = []
    if shown is None:  # all of this place lies in a branch that was left: that one comes back first
        outer = next((each for each in by_turn.values() if each.branch != _position(each)), None)
        if outer is None:
            raise NotFound(NOT_HERE)
        above = conversation.turns.filter(position=outer.branch).exclude(place=0).first()
        if above is None:
            raise NotFound(NOT_HERE)
        came = _choose(conversation, above)
        if outer.turn_id == turn.pk:
            return came
        shown = outer
    branch_leave(conversation, shown, turn)
    summary_cut(conversation=conversation, position=wanted.position)
    back = conversation.messages.filter(branch=turn.position)
    found = list(back.values_list("id", flat=True))
    back.update(superseded_by=None, branch=0)
    conversation.messages.filter(id__in=found).exclude(text="").update(indexed=False)
    turn.announced, turn.chosen = False, True
    turn.save(update_fields=["announced", "chosen"])
    return [*came, *found]


def _position(message: Message) -> int:
    return message.turn.position if message.turn else 0


def _opening(conversation: Conversation) -> QuerySet[Message]:
    return conversation.messages.filter(role=Role.USER, kind__in=OPENING).order_by("position")
