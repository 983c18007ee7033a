"""The state of a conversation in one frame, and what a client has missed since a sequence number."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.agent.selectors import toolcalls_undecided
from apps.agent.turn.events import ModelRetry
from apps.builder.builds.selectors import builds_in
from apps.chat.conversations import markdown
from apps.chat.conversations.links import ConversationLinks
from apps.chat.conversations.messages import (
    MessageToolCallOutput,
    calls_by_round,
    message_json,
    messages_json,
    newest_messages,
    toolcall_seen,
)
from apps.chat.conversations.selectors import conversation_get
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn, TurnEvent, TurnStatus
from apps.chat.stream.events import (
    BLOCKS_PER_SEGMENT,
    LiveHtml,
    LiveText,
    LoggedEvent,
    events_after,
    events_of,
    text_after,
    with_html,
)
from apps.chat.summary.selectors import SUMMARY_FIELDS, summary_json
from apps.core.db.prepared import prepared
from apps.core.db.writing import one_view

SNAPSHOT_MESSAGES = 30
REPLAY_ROWS = 2000


@dataclass(frozen=True, slots=True)
class Start:
    """The first frames for a watcher, who with them knows everything up to `seq`; and the answer under way at `stored`, where the
    rows stand. Who comes back may know more than those hold yet."""

    frames: list[dict[str, Any]]
    seq: int
    stored: int
    live: LiveText | None
    ended: bool = False  # the turn, for a program that follows one


@one_view()
def snapshot(conversation: Conversation) -> Start:
    """One frame, the conversation as its rows say; `seq` is the newest event that is in it."""
    conversation.refresh_from_db(
        fields=["stored_seq", "title", "archived", "model", "instructions", *SUMMARY_FIELDS]
    )
    turn, live = under_way(conversation)
    queued = Message.objects.owned_by(conversation.user_id).filter(
        conversation=conversation,
        turn__state=TurnStatus.QUEUED,
        superseded_by=None,
        kind=MessageKind.TEXT,
    )
    shown = newest_messages(conversation, limit=SNAPSHOT_MESSAGES)
    frame = {
        "type": "snapshot",
        "conversation": str(conversation.id),
        "seq": conversation.stored_seq,
        "title": conversation.title,
        "use_memory": conversation.use_memory,
        "archived": conversation.archived,
        "model": conversation.model,
        "instructions": bool(conversation.instructions),
        "messages": messages_json(conversation.user_id, shown),
        "summary": summary_json(conversation),
        "turn": _turn_json(turn, live) if turn and live else None,
        "builds": builds_in(conversation.user_id, conversation.id),
        "queued": [
            {"turn": str(row.turn_id), "text": row.text, "message": message_json(row, row.turn)}
            for row in queued.select_related("turn").order_by("position")
        ],
    }
    return Start([frame], conversation.stored_seq, conversation.stored_seq, live)


def under_way(conversation: Conversation) -> tuple[Turn | None, LiveText | None]:
    """The turn that runs, or waits for the user, and its text since its last stored message."""
    turn = _turn_begun.first(conversation.id)
    if turn is None:
        return None, None
    answers = turn.messages.filter(role=Role.ASSISTANT, kind=MessageKind.TEXT)
    newest = turn.messages.order_by("-seq").values_list("seq", flat=True).first() or 0
    return turn, LiveText(turn.id, answers.exclude(text="").count(), text_after(turn.id, newest))


@prepared
def _turn_begun(conversation_id: UUID) -> QuerySet[Turn]:
    begun = [TurnStatus.RUNNING, TurnStatus.WAITING]
    rows = Turn.objects.unscoped().filter(conversation_id=conversation_id, state__in=begun)
    return rows.reverse()[:1]


def _turn_json(turn: Turn, live: LiveText) -> dict[str, Any]:
    leads = ConversationLinks(turn.user_id, turn.conversation_id)
    found = markdown.blocks(live.text, leads, live=True)
    stored = set(turn.messages.filter(role=Role.ASSISTANT).values_list("round", flat=True))
    calls = calls_by_round(turn.user_id, {turn.id})
    newest = TurnEvent.objects.filter(turn=turn).order_by("-seq").first()
    return {
        "id": str(turn.id),
        "state": turn.state,
        "text": live.text,
        "html": "\n".join(block.html for block in found),
        "blocks": [
            {"block": live.segment * BLOCKS_PER_SEGMENT + index, "html": block.html}
            for index, block in enumerate(found)
        ],
        "waiting_for": asks_open(turn),
        "tool_calls": [
            MessageToolCallOutput.dump(toolcall_seen(call))
            for (_, number), rows in calls.items()
            if number not in stored
            for call in rows
        ],
        "memories": turn.memories,
        # The `model_retry` that nothing has followed yet.
        "retry": json.loads(newest.payload) if newest and newest.type == ModelRetry.type else None,
    }


def asks_open(turn: Turn) -> list[dict[str, Any]]:
    """The questions and approvals of `Turn.waiting_for` that nobody has decided yet."""
    if not turn.waiting_for:
        return []
    undecided = {str(call.id) for call in toolcalls_undecided(user_id=turn.user_id, turn_id=turn.id)}
    return [ask for ask in turn.waiting_for if ask["id"] in undecided]


@one_view()
def missed_events(conversation: Conversation, seq: int) -> list[LoggedEvent] | None:
    """The stored events above `seq`; None where some are gone, or too many, so that a snapshot is due."""
    conversation.refresh_from_db(fields=["stored_seq", "last_seq", "pruned_seq"])
    if not conversation.pruned_seq <= seq <= conversation.last_seq or conversation.last_seq == 0:
        return None
    newer = TurnEvent.objects.filter(conversation=conversation, last_seq__gt=seq)
    if newer.count() > REPLAY_ROWS:
        return None
    return events_after(conversation.id, seq, limit=REPLAY_ROWS)


@one_view()
def start_now(user_id: UUID, conversation_id: UUID) -> Start:
    """A start for a client that wants only what comes from now on. Synchronous; NotFound as for `start_for`."""
    conversation = conversation_get(user_id, conversation_id)
    return Start([], conversation.stored_seq, conversation.stored_seq, under_way(conversation)[1])


@one_view()
def start_for(user_id: UUID, conversation_id: UUID, seq: int | None) -> Start:
    """Start for a client of the user that knows all up to `seq`: the events since, or a snapshot.

    Without `seq` it is a snapshot. Synchronous. NotFound for another user's conversation.
    """
    conversation = conversation_get(user_id, conversation_id)
    missed = None if seq is None else missed_events(conversation, seq)
    if seq is None or missed is None:
        return snapshot(conversation)
    events: list[LoggedEvent] = []
    for turn_id in dict.fromkeys(event.turn_id for event in missed):
        live = LiveHtml(ConversationLinks(user_id, conversation.id))
        live.prime(LiveText(turn_id, 0, ""), 0)
        whole = events_of(TurnEvent.objects.filter(turn_id=turn_id).order_by("seq"))
        events += with_html(whole, seq, live)
    # Events of a build come beside later turns: the numbers of turns overlap then.
    events.sort(key=lambda event: event.seq)
    frames, stored = [event.frame(conversation.id) for event in events], conversation.stored_seq
    return Start(frames, max(seq, stored), stored, under_way(conversation)[1])
