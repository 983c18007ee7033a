"""Calls that the model's endpoint runs itself, as the turn tells and keeps them: a card, a row, the taint."""

import json
import time
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from apps.agent import services
from apps.agent.client import ServerCall, ServerResult
from apps.agent.events import Event, ServerToolStart, ToolProgress, ToolResult
from apps.agent.executor import ToolExecutor
from apps.agent.models import SERVER_TIER, ToolCall
from apps.agent.outcome import Outcome
from apps.agent.results import UNTRUSTED, result_text, storable
from apps.agent.server_blocks import error_of, results_of
from apps.agent.shapes import ToolCallOutput
from apps.core.db.pool import in_db
from apps.core.ids import uuid7

ERRORS = {
    "max_uses_exceeded": "The search was not made: there were too many in this answer.",
    "too_many_requests": "The search engine asks to slow down.",
    "query_too_long": "The search was too long.",
    "invalid_tool_input": "The search could not be understood.",
}
RESULT_CHARS = 20_000


@dataclass(slots=True)
class _Open:
    call: ServerCall
    id: UUID = field(default_factory=uuid7)
    started: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class ServerCalls:
    """The calls of one turn. A row is written when a call has its result: until then there is nothing to resume."""

    executor: ToolExecutor
    ended: list[dict[str, Any]] = field(default_factory=list)
    _open: dict[str, _Open] = field(default_factory=dict)

    def taken(self) -> list[dict[str, Any]]:
        """The calls that have ended since the last time, as a `Response` names them."""
        ended, self.ended = self.ended, []
        return ended

    def begin(self, call: ServerCall) -> list[Event]:
        """The card appears."""
        opened = self._open.setdefault(call.id, _Open(call))
        return [ServerToolStart(str(opened.id), call.name, self._shown(call.input))]

    async def end(self, result: ServerResult, round: int) -> list[Event]:
        """Writes the row and tells what was found. A call that began in another process gets its card now."""
        opened = self._open.pop(result.tool_use_id, None)
        events = [] if opened else self.begin(ServerCall(result.tool_use_id, result.name, {}))
        opened = opened or self._open.pop(result.tool_use_id)
        row = await in_db(
            services.toolcall_record,
            user_id=self.executor.user_id,
            conversation_id=self.executor.conversation_id,
            turn_id=self.executor.turn_id,
            round=round,
            id=opened.id,
            call=services.NewCall(
                tool_use_id=result.tool_use_id,
                name=opened.call.name,
                tier=SERVER_TIER,
                input=self._shown(opened.call.input),
            ),
            outcome=self._outcome(opened, result.block),
        )
        self.ended.append(ToolCallOutput.dump(row))
        return [*events, *_told(row, result.block)]

    def _shown(self, arguments: dict[str, Any]) -> dict[str, Any]:
        shown: dict[str, Any] = self.executor.scrubber.json(storable(arguments))
        return shown

    def _outcome(self, opened: _Open, block: dict[str, Any]) -> Outcome:
        took = round((time.monotonic() - opened.started) * 1000)
        if code := error_of(block):
            return Outcome(
                ERRORS.get(code, f"The search failed ({code})."), code, duration_ms=took, untrusted=True
            )
        found = {"query": opened.call.input.get("query", ""), "results": results_of(block)}
        text = result_text(
            json.dumps(found, ensure_ascii=False), limit=RESULT_CHARS, scrubber=self.executor.scrubber
        )
        return Outcome(UNTRUSTED + text, duration_ms=took, untrusted=True)


def _told(row: ToolCall, block: dict[str, Any]) -> list[Event]:
    found = {"status": "found", "count": len(results_of(block))}
    progress: list[Event] = [] if row.is_error else [ToolProgress(str(row.id), row.name, found)]
    return [*progress, ToolResult(str(row.id), row.name, row.result, row.is_error, row.duration_ms)]
