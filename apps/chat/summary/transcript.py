"""Turns as text: what a summary is made from.

The words of both sides and a line per tool call. Left out are the blocks that Izzy itself put beside the user's
words (the date, surfaced memories) and what tools quoted from other people's pages and files.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from apps.agent.models import ToolCall
from apps.agent.results import UNTRUSTED
from apps.chat.models import Message, Role

MESSAGE_CHARS = 12_000
INPUT_CHARS = 400
RESULT_CHARS = 400
LEFT_OUT = "(text by others, left out here)"

_TAG = re.compile(r"</?\s*(?:messages|message|tool|record)\b(?:[^<>]*>)?", re.IGNORECASE)


@dataclass(kw_only=True)
class FoldedTurn:
    """A turn that is to be summed up: its messages in force with text, and its tool calls in order."""

    turn_id: UUID
    messages: list[Message] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    def said(self, role: Role) -> str:
        """The text of one role."""
        return "\n\n".join(message.text for message in self.messages if message.role == role and message.text)


def turn_text(turn: FoldedTurn, *, message_chars: int = MESSAGE_CHARS) -> str:
    """The turn as `<message>` and `<tool>` elements; a long message keeps its beginning and its end."""
    lines: list[str] = []
    calls = list(turn.calls)
    for message in turn.messages:
        if message.text:
            lines.append(_message(message, message_chars))
        mine = [call for call in calls if message.role == Role.ASSISTANT and call.round <= message.round]
        calls = [call for call in calls if call not in mine]
        lines += [_call(call) for call in mine]
    return "\n".join([*lines, *(_call(call) for call in calls)])


def _message(message: Message, limit: int) -> str:
    speaker = "user" if message.role == Role.USER else "Izzy"
    body = shortened(_TAG.sub("", message.text), limit)
    return f'<message from="{speaker}" at="{_time(message.created_at)}">\n{body}\n</message>'


def _call(call: ToolCall) -> str:
    given = shortened(json.dumps(call.input, ensure_ascii=False, sort_keys=True), INPUT_CHARS)
    foreign = call.untrusted or call.result.startswith(UNTRUSTED)
    result = LEFT_OUT if foreign else shortened(" ".join(call.result.split()), RESULT_CHARS)
    outcome = "failed: " if call.is_error else ""
    return f'<tool name="{call.name}">\n{_TAG.sub("", given)}\n{outcome}{_TAG.sub("", result)}\n</tool>'


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M}"


def shortened(text: str, limit: int) -> str:
    """The text, or its first two thirds and its end with an ellipsis between them."""
    if len(text) <= limit:
        return text
    head = limit * 2 // 3
    return f"{text[:head].rstrip()} […] {text[len(text) - (limit - head) :].lstrip()}"


def chunked(texts: Sequence[str], sizes: Sequence[int], limit: int) -> list[list[int]]:
    """The indices of these texts in runs of at most `limit` tokens each, a larger one alone."""
    runs: list[list[int]] = []
    room = 0
    for index, size in enumerate(sizes):
        if not runs or size > room:
            runs.append([])
            room = limit
        runs[-1].append(index)
        room -= size
    return runs if texts else []
