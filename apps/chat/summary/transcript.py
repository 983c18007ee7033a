"""Turns as text: what a summary is made from, by a model or without one.

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
from apps.agent.tools.results import UNTRUSTED
from apps.chat.models import Message, Role
from apps.core.text import estimate_tokens, split_sentences

MESSAGE_CHARS = 12_000
INPUT_CHARS = 400
RESULT_CHARS = 400
LEFT_OUT = "(text by others, left out here)"
_TAG = re.compile(r"</?\s*(?:messages|message|tool|record)\b(?:[^<>]*>)?", re.IGNORECASE)
LEVELS = ((200, 160), (70, 0), (40, 0))
"""Characters of the question and the answer; where the lines of one level do not fit, the next one is tried."""
DATED = 70
EARLIER_SHARE = 0.4  # the earlier summary's greatest share of the budget
_MARKUP = re.compile(r"[*_`#>|]+")


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


def extract(earlier: str, turns: Sequence[FoldedTurn], *, tokens: int) -> str:
    """The earlier summary and a line per turn, of at most `tokens` estimated tokens; the oldest lines give way."""
    kept = _newest(earlier.splitlines(), int(tokens * EARLIER_SHARE))
    room = tokens - estimate_tokens("\n".join(kept))
    for level in LEVELS:
        lines = [_line(turn, *level) for turn in turns]
        if estimate_tokens("\n".join(lines)) <= room:
            break
    return "\n".join([*kept, *_newest(lines, room)]).strip()


def _line(turn: FoldedTurn, said_chars: int, answer_chars: int) -> str:
    said = _first(turn.said(Role.USER), said_chars)
    dated = turn.messages and said_chars >= DATED
    when = f"{turn.messages[0].created_at:%Y-%m-%d %H:%M} " if dated else ""
    answer = _first(turn.said(Role.ASSISTANT), answer_chars) if answer_chars else ""
    return f"- {when}The user: “{said}”" + (f" Izzy: “{answer}”" if answer else "")


def _first(text: str, limit: int) -> str:
    """The first sentence, or more of them as long as they fit, without line breaks and markup."""
    plain = " ".join(_MARKUP.sub(" ", text[: limit * 8]).split())
    found = ""
    for sentence in split_sentences(plain):
        if found and len(found) + len(sentence) > limit:
            break
        found += sentence
    found = found.strip()
    return found if len(found) <= limit else found[:limit].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def _newest(lines: Sequence[str], tokens: int) -> list[str]:
    """The last lines that fit; a line in front says how many do not."""
    if estimate_tokens("\n".join(lines)) <= tokens:
        return list(lines)
    kept: list[str] = []
    room = tokens - 8
    for line in reversed(lines):
        room -= estimate_tokens(line) + 1
        if room < 0:
            break
        kept.insert(0, line)
    return [f"- ({len(lines) - len(kept)} earlier lines left out)", *kept]
