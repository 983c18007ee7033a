"""The state of a conversation in one frame, and what a client has missed since a sequence number."""

import json
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.agent.events import ModelRetry
from apps.builder.builds.selectors import builds_in
from apps.chat import markdown
from apps.chat.links import ConversationLinks
from apps.chat.log import LoggedEvent, events_after, events_of, text_after
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn, TurnEvent, TurnState
from apps.chat.reading import one_view
from apps.chat.selectors.messages import (
    calls_by_round,
    message_json,
    messages_json,
    newest_messages,
    toolcall_seen,
)
from apps.chat.shapes import MessageToolCallOutput
from apps.chat.summary.selectors import SUMMARY_FIELDS, summary_json

SNAPSHOT_MESSAGES = 200
REPLAY_ROWS = 2000
BLOCKS_PER_SEGMENT = 1000


@dataclass(frozen=True, slots=True)
class LiveText:
    """The answer under way: the run of text (`segment`, from 0, counts those before it) not in a message yet."""

    turn_id: UUID
    segment: int
    text: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The `snapshot` frame and the live text it shows, for whoever renders what follows."""

    frame: dict[str, Any]
    seq: int
    live: LiveText | None


@one_view()
def snapshot(conversation: Conversation) -> Snapshot:
    """The conversation as its rows say; `seq` is the newest event that is in it."""
    conversation.refresh_from_db(fields=["stored_seq", "title", *SUMMARY_FIELDS])
    turn = turn_under_way(conversation)
    live = live_text(turn) if turn else None
    shown = newest_messages(conversation, limit=SNAPSHOT_MESSAGES)
    frame = {
        "type": "snapshot",
        "conversation": str(conversation.id),
        "seq": conversation.stored_seq,
        "title": conversation.title,
        "use_memory": conversation.use_memory,
        "messages": messages_json(conversation.user_id, shown),
        "summary": summary_json(conversation),
        "turn": _turn_json(turn, live) if turn and live else None,
        "builds": builds_in(conversation.user_id, conversation.id),
        "queued": _queued(conversation),
    }
    return Snapshot(frame, conversation.stored_seq, live)


def turn_under_way(conversation: Conversation) -> Turn | None:
    """The turn that runs, or waits for the user."""
    return conversation.turns.filter(state__in=[TurnState.RUNNING, TurnState.WAITING]).last()


def live_text(turn: Turn) -> LiveText:
    """The turn's text since its last stored message."""
    answers = turn.messages.filter(role=Role.ASSISTANT, kind=MessageKind.TEXT)
    newest = turn.messages.order_by("-seq").values_list("seq", flat=True).first() or 0
    return LiveText(turn.id, answers.exclude(text="").count(), text_after(turn.id, newest))


def _turn_json(turn: Turn, live: LiveText) -> dict[str, Any]:
    found = markdown.blocks(live.text, ConversationLinks(turn.user_id, turn.conversation_id))
    stored = set(turn.messages.filter(role=Role.ASSISTANT).values_list("round", flat=True))
    calls = calls_by_round(turn.user_id, {turn.id})
    return {
        "id": str(turn.id),
        "state": turn.state,
        "text": live.text,
        "html": "\n".join(block.html for block in found),
        "blocks": [
            {"block": live.segment * BLOCKS_PER_SEGMENT + index, "html": block.html}
            for index, block in enumerate(found)
        ],
        "waiting_for": turn.waiting_for,
        "tool_calls": [
            MessageToolCallOutput.dump(toolcall_seen(call))
            for (_, number), rows in calls.items()
            if number not in stored
            for call in rows
        ],
        "memories": turn.memories,
        "retry": _retry_json(turn),
    }


def _retry_json(turn: Turn) -> dict[str, Any] | None:
    """The `model_retry` that nothing has followed yet."""
    newest = TurnEvent.objects.filter(turn=turn).order_by("-seq").first()
    return json.loads(newest.payload) if newest and newest.type == ModelRetry.type else None


def _queued(conversation: Conversation) -> list[dict[str, Any]]:
    rows = Message.objects.owned_by(conversation.user_id).filter(
        conversation=conversation, turn__state=TurnState.QUEUED, superseded_by=None, kind=MessageKind.TEXT
    )
    return [
        {"turn": str(row.turn_id), "text": row.text, "message": message_json(row, row.turn)}
        for row in rows.select_related("turn").order_by("position")
    ]


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


def turn_events(turn_id: UUID) -> list[LoggedEvent]:
    """All stored events of a turn, in order."""
    return events_of(TurnEvent.objects.filter(turn_id=turn_id).order_by("seq"))
