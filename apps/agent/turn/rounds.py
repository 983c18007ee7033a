"""The tool calls of one round: in order, side by side where they only read, and held back for the user; and those that the
model's endpoint runs itself.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from apps.agent import services
from apps.agent.model.client import ServerCall, ServerResult
from apps.agent.model.messages import error_of, results_of
from apps.agent.models import SERVER_TIER, ToolCall
from apps.agent.selectors import ToolCallOutput
from apps.agent.tools.base import Tier, Tool
from apps.agent.tools.results import ToolOutcome, result_text
from apps.agent.turn.events import (
    ApprovalRequested,
    Event,
    Question,
    ServerToolStart,
    ToolProgress,
    ToolResult,
    ToolStart,
)
from apps.agent.turn.executor import ApprovalNeeded, ToolExecutor
from apps.core.db.pool import in_db
from apps.core.text import storable

UserDialog: TypeAlias = Question | ApprovalRequested
ASKED_AFTER = (
    "Izzy asks this after it has read what others wrote, and they may be behind the question. Do not answer it with what they "
    "must not know."
)
SERVER_ERRORS = {
    "max_uses_exceeded": "The search was not made: there were too many in this answer.",
    "too_many_requests": "The search engine asks to slow down.",
    "query_too_long": "The search was too long.",
    "invalid_tool_input": "The search could not be understood.",
}
SERVER_RESULT_CHARS = 20_000


class TurnTaken(Exception):
    """The rows say that another process runs or has ended this turn's calls; this one must stop without a trace."""


@dataclass(slots=True)
class Call:
    """One call of the round: the model's block, its row, and how it ended (None while it is open)."""

    id: str  # of the row
    block: dict[str, Any]
    row: ToolCall
    tool: Tool | None
    outcome: ToolOutcome | None


@dataclass
class Round:
    """Runs, or goes on with, the `tool_use` blocks of one assistant message.

    A call that waits for the user holds back what comes after it, so that the order is kept; when all that waits
    has been answered, running the round again does the rest. After `events` is used up, `waiting` is empty and
    `results` has one block for each call, or `waiting` says what the user is asked.
    """

    executor: ToolExecutor
    blocks: list[dict[str, Any]]
    number: int
    calls: list[Call] = field(default_factory=list)
    waiting: list[UserDialog] = field(default_factory=list)
    _queue: asyncio.Queue[Event | None] = field(default_factory=asyncio.Queue)
    _taken: bool = False

    @property
    def results(self) -> list[dict[str, Any]]:
        """The `tool_result` blocks of the calls that have ended, in order."""
        return [
            services.tool_result(call.block["id"], call.outcome.result, is_error=call.row.is_error)
            for call in self.calls
            if call.outcome is not None
        ]

    async def events(self) -> AsyncGenerator[Event, None]:
        """The events as they happen. Closing the iterator cancels what runs."""
        work = asyncio.create_task(self._work())
        try:
            while (event := await self._queue.get()) is not None:
                yield event
            await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _work(self) -> None:
        try:
            names = [block["name"] for block in self.blocks]
            tools = [self.executor.find(name) for name in names]
            new = [
                self.executor.row(block, tool.tier if tool else Tier.READ_ONLY, self.number, position)
                for position, (block, tool) in enumerate(zip(self.blocks, tools, strict=True))
            ]
            rows = await in_db(services.toolcalls_open, new)
            for block, row, tool in zip(self.blocks, rows, tools, strict=True):
                ended = (row.result, row.error_code, row.build_id, row.duration_ms, row.untrusted)
                outcome = ToolOutcome(*ended) if row.state == ToolCall.State.DONE else None
                self.calls.append(Call(str(row.id), block, row, tool, outcome))
            side_by_side: list[Call] = []
            for call in self.calls:
                if call.outcome is not None or not await self._may_run(call):
                    continue
                side_by_side.append(call)
                if call.row.tier != Tier.READ_ONLY:
                    await self._run(side_by_side[:-1])
                    await self._run([call])
                    side_by_side = []
            await self._run(side_by_side)
        finally:
            self._queue.put_nowait(None)

    async def _may_run(self, call: Call) -> bool:
        """Whether the call runs now; else it is ended here, waits, or is held back behind one that waits."""
        refusal = self.executor.refusal(call.tool, call.block["name"], call.block["input"])
        if call.row.decision == ToolCall.Decision.DECLINED:
            refusal = ToolOutcome(services.DECLINED, "declined")
        if refusal is not None or call.tool is None:
            row = call.row
            self._queue.put_nowait(ToolStart(call.id, row.name, row.input, row.covered or None))
            await self._finish(call, refusal or ToolOutcome("", "unknown_tool"))
            if self._taken:
                raise TurnTaken
            return False
        if not call.row.decision and (dialog := await self._dialog(call, call.tool)):
            await in_db(
                services.toolcall_wait,
                user_id=self.executor.user_id,
                id=call.row.id,
                waits_for=(
                    ToolCall.WaitsFor.ANSWER
                    if isinstance(dialog, Question)
                    else ToolCall.WaitsFor.APPROVAL
                ),
                permission=call.row.permission,
                reach=call.row.reach,
            )
            self.waiting.append(dialog)
            self._queue.put_nowait(dialog)
        return not self.waiting

    async def _dialog(self, call: Call, tool: Tool) -> UserDialog | None:
        """Returns what the user is asked before the call may end, or None where it runs unasked."""
        row, given = call.row, call.block["input"]
        if tool.waits_for_answer:
            tainted = await in_db(lambda: self.executor.taint.is_tainted)
            return Question(
                call.id, str(row.input.get("question", "")), ASKED_AFTER if tainted else None
            )
        needed: ApprovalNeeded | None = ApprovalNeeded()
        if tool.permission is not None:
            row.permission = await in_db(tool.permission, self.executor.user_id, given) or {}
        if not row.permission:
            needed = await in_db(self.executor.approval_needed, tool, given, (row.round, row.position))
            row.covered = needed.covered if needed else ""
        if needed is None:
            return None
        place = row.round, row.position
        row.reach = needed.reach or await in_db(self.executor.reach, tool, given, place)
        if needed.covered:
            return None
        return ApprovalRequested(
            call.id,
            row.name,
            row.input,
            row.permission or None,
            needed.reason or None,
            needed.always or None,
            needed.reach,
        )

    async def _run(self, calls: list[Call]) -> None:
        """Runs these calls side by side; all end, whatever happens to one of them."""
        if not calls:
            return
        rows = [call.row for call in calls]
        if not await in_db(services.toolcalls_start, user_id=self.executor.user_id, rows=rows):
            raise TurnTaken
        for call in calls:
            row = call.row
            self._queue.put_nowait(ToolStart(call.id, row.name, row.input, row.covered or None))
        async with asyncio.TaskGroup() as group:
            for call in calls:
                group.create_task(self._run_one(call))
        if self._taken:
            raise TurnTaken

    async def _run_one(self, call: Call) -> None:
        async def emit(data: dict[str, Any]) -> None:
            shown = self.executor.scrubber.json(storable(data))
            self._queue.put_nowait(ToolProgress(call.id, call.row.name, shown))

        assert call.tool is not None  # noqa: S101 - _may_run has seen to it
        approved = call.row.decision == ToolCall.Decision.APPROVED
        bound = call.row.waits_for == ToolCall.WaitsFor.APPROVAL or call.row.covered
        outcome = await self.executor.execute(
            call.tool,
            call.block["input"],
            call_id=call.row.id,
            emit=emit,
            permission=call.row.permission if approved and call.row.permission else None,
            reach=call.row.reach if bound else None,
            answer=call.row.answer,
        )
        await self._finish(call, outcome)

    async def _finish(self, call: Call, outcome: ToolOutcome) -> None:
        row = call.row
        if not await in_db(
            services.toolcall_finish, user_id=self.executor.user_id, id=row.id, outcome=outcome
        ):
            self._taken = True
            return
        call.outcome = outcome
        row.result, row.is_error, row.duration_ms = (
            outcome.result,
            bool(outcome.error_code),
            outcome.duration_ms,
        )
        self._queue.put_nowait(ToolResult(call.id, row.name, row.result, row.is_error, row.duration_ms))


@dataclass(slots=True)
class ServerCalls:
    """Calls of one turn that the model's endpoint runs itself: a card, a row, the taint.

    A row is written when a call has its result: until then there is nothing to resume.
    """

    executor: ToolExecutor
    ended: list[dict[str, Any]]  # gets each call that has ended, as a `Response` names it
    _open: dict[str, tuple[ToolCall, float]] = field(
        default_factory=dict
    )  # row and start, by the endpoint's id

    def begin(self, call: ServerCall) -> Event:
        """The card appears."""
        block = {"id": call.id, "name": call.name, "input": call.input}
        row, _ = self._open.setdefault(
            call.id, (self.executor.row(block, SERVER_TIER), time.monotonic())
        )
        return ServerToolStart(str(row.id), row.name, row.input)

    async def end(self, result: ServerResult, number: int) -> list[Event]:
        """Writes the row and says what was found. A call that began in another process gets its card now."""
        events: list[Event] = []
        if result.tool_use_id not in self._open:
            events.append(self.begin(ServerCall(result.tool_use_id, result.name, {})))
        row, started = self._open.pop(result.tool_use_id)
        code, pages = error_of(result.block), results_of(result.block)
        text = SERVER_ERRORS.get(code, f"The search failed ({code}).")
        if not code:
            found = {"query": row.input.get("query", ""), "results": pages}
            text = result_text(
                found, limit=SERVER_RESULT_CHARS, scrubber=self.executor.scrubber, untrusted=True
            )
            events.append(ToolProgress(str(row.id), row.name, {"status": "found", "count": len(pages)}))
        took, row.round = round((time.monotonic() - started) * 1000), number
        await in_db(
            services.toolcall_record, row, ToolOutcome(text, code, duration_ms=took, untrusted=True)
        )
        self.ended.append(ToolCallOutput.dump(row))
        return [*events, ToolResult(str(row.id), row.name, row.result, row.is_error, row.duration_ms)]
