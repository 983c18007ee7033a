"""Messages as they are added to a conversation, and how a turn that ended early is made whole."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import F

from apps.agent.canonical import canonical_json
from apps.agent.events import Event, ToolResult
from apps.agent.models import ToolCall
from apps.agent.server_blocks import readable_text
from apps.agent.services import Reason, toolcalls_close_open
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn

STOPPED: Reason = "stopped"
INTERRUPTED: Reason = "interrupted"
FAILED: Reason = "failed"
SUPERSEDED: Reason = "superseded"

CLOSING_WORDS: dict[Reason, str] = {
    STOPPED: "(Stopped by the user.)",
    INTERRUPTED: "(No answer: the server was interrupted.)",
    FAILED: "(No answer: the turn failed.)",
    SUPERSEDED: "(The user went on instead of answering.)",
}
"""Stands in the model's history for a turn that ended unanswered: roles keep alternating."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A message to be added at the end of its conversation."""

    role: Role
    blocks: list[dict[str, Any]]
    kind: MessageKind = MessageKind.TEXT
    stop_reason: str = ""
    round: int = 0
    seq: int = 0

    @property
    def text(self) -> str:
        """The readable text."""
        if self.kind != MessageKind.TEXT:
            return ""
        return readable_text(self.blocks)


def position_next(conversation_id: UUID) -> int:
    """A fresh place at the end of the conversation. Call it inside a transaction."""
    row = Conversation.objects.unscoped().filter(id=conversation_id)
    row.update(last_position=F("last_position") + 1)
    return row.values_list("last_position", flat=True).get()


def message_append(turn: Turn, draft: Draft) -> Message:
    """Adds a message of the turn. Call it inside a transaction."""
    text = draft.text
    return Message.objects.create(
        user_id=turn.user_id,
        conversation_id=turn.conversation_id,
        turn=turn,
        position=position_next(turn.conversation_id),
        role=draft.role,
        kind=draft.kind,
        blocks=canonical_json(draft.blocks),
        text=text,
        speaker=draft.role if text else "",
        stop_reason=draft.stop_reason,
        round=draft.round,
        seq=draft.seq,
        indexed=not text,
        captured=not text,
    )


def turn_close(
    turn: Turn, *, reason: Reason, partial: Sequence[dict[str, Any]] = (), seq: int = 0
) -> list[Event]:
    """Leaves the turn's messages in a state from which the conversation can go on.

    Stores the text that was under way, ends open tool calls with an error result and, where no answer stands at
    the end, adds closing words that only the model sees. Returns a `tool_result` event for each call it ended.
    Idempotent; call it inside a transaction.
    """
    last = turn.messages.order_by("position").last()
    if partial:
        draft = Draft(
            role=Role.ASSISTANT,
            blocks=list(partial),
            stop_reason=reason,
            round=(last.round if last else 0) + 1,
            seq=seq,
        )
        message_append(turn, draft)
        return []
    if last is None or _is_answer(last):
        return []
    events = _close_calls(turn, last, reason) if last.role == Role.ASSISTANT else []
    words = [{"type": "text", "text": CLOSING_WORDS[reason]}]
    message_append(turn, Draft(role=Role.ASSISTANT, kind=MessageKind.CLOSING, blocks=words, round=last.round))
    return events


def _is_answer(message: Message) -> bool:
    return message.role == Role.ASSISTANT and not _tool_uses(message)


def _tool_uses(message: Message) -> list[dict[str, Any]]:
    return [block for block in json.loads(message.blocks) if block.get("type") == "tool_use"]


def _close_calls(turn: Turn, message: Message, reason: Reason) -> list[Event]:
    """Ends the open calls of an assistant message and stores the results of all of its calls."""
    calls = ToolCall.objects.for_user(turn.user_id).filter(turn_id=turn.id, round=message.round)
    open_ids = [call.id for call in calls if call.is_open]
    results = toolcalls_close_open(
        turn_id=turn.id,
        round=message.round,
        blocks=json.loads(message.blocks),
        user_id=turn.user_id,
        reason=reason,
    )
    if results:
        draft = Draft(role=Role.USER, kind=MessageKind.TOOL_RESULTS, blocks=results, round=message.round)
        message_append(turn, draft)
    return [
        ToolResult(str(call.id), call.name, call.result, call.is_error, call.duration_ms)
        for call in calls.filter(id__in=open_ids)
    ]
