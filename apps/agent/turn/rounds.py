"""The tool calls of one round: in order, side by side where they only read, and held back for the user; and those that the
model's endpoint runs itself.
"""

import asyncio
import json
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import UUID

from apps.agent import services
from apps.agent.model.client import ServerCall, ServerResult
from apps.agent.model.messages import error_of, results_of
from apps.agent.models import SERVER_TIER, ToolCall
from apps.agent.selectors import ToolCallOutput
from apps.agent.services import NewCall, tool_result
from apps.agent.tools.base import Tier, Tool, WaitsFor
from apps.agent.tools.results import UNTRUSTED, Outcome, result_text, storable
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


Waiting: TypeAlias = Question | ApprovalRequested
NOTHING_NEEDED = ApprovalNeeded()


class TurnTaken(Exception):
    """The rows say that another process runs or has ended this turn's calls; this one must stop without a trace."""


@dataclass(slots=True)
class Call:
    """One call of the round: the model's block, its row, and how it ended (None while it is open). `needed` is
    what the card says about why it waits, and offers."""

    block: dict[str, Any]
    row: ToolCall
    tool: Tool | None
    outcome: Outcome | None = None
    needed: ApprovalNeeded = NOTHING_NEEDED

    @property
    def id(self) -> str:
        return str(self.row.id)


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
    waiting: list[Waiting] = field(default_factory=list)
    _queue: asyncio.Queue[Event | None] = field(default_factory=asyncio.Queue)
    _taken: bool = False

    @property
    def results(self) -> list[dict[str, Any]]:
        """The `tool_result` blocks of the calls that have ended, in order."""
        ended = [(call, call.outcome) for call in self.calls if call.outcome is not None]
        return [
            tool_result(call.block["id"], outcome.result, is_error=outcome.is_error)
            for call, outcome in ended
        ]

    @property
    def build_id(self) -> str | None:
        """The newest build that a call of this round began."""
        return next(
            (
                call.outcome.build_id
                for call in reversed(self.calls)
                if call.outcome and call.outcome.build_id
            ),
            None,
        )

    async def events(self) -> AsyncGenerator[Event, None]:
        """The events as they happen. Closing the iterator cancels what runs."""
        work = asyncio.create_task(self._work())
        work.add_done_callback(lambda _: self._queue.put_nowait(None))
        try:
            while (event := await self._queue.get()) is not None:
                yield event
            await work
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)

    async def _work(self) -> None:
        await self._open()
        side_by_side: list[Call] = []
        for call in self.calls:
            if call.outcome is not None:
                continue
            if not await self._may_run(call):
                continue
            if call.row.tier == Tier.READ_ONLY:
                side_by_side.append(call)
                continue
            await self._run(side_by_side)
            await self._run([call])
            side_by_side = []
        await self._run(side_by_side)

    async def _open(self) -> None:
        new = []
        for block in self.blocks:
            tool = self.executor.find(block["name"])
            tier = tool.tier if tool else Tier.READ_ONLY
            shown = self.executor.scrubber.json(storable(block["input"]))
            new.append(NewCall(tool_use_id=block["id"], name=block["name"], tier=tier, input=shown))
        rows = await in_db(
            services.toolcalls_open,
            user_id=self.executor.user_id,
            conversation_id=self.executor.conversation_id,
            turn_id=self.executor.turn_id,
            round=self.number,
            calls=new,
        )
        for block, row in zip(self.blocks, rows, strict=True):
            self.calls.append(Call(block, row, self.executor.find(block["name"]), _ended(row)))

    async def _may_run(self, call: Call) -> bool:
        """Whether the call runs now; else it is ended here, waits, or is held back behind one that waits."""
        if call.row.decision == ToolCall.Decision.DECLINED:
            await self._end_unrun(call, Outcome(services.DECLINED, "declined"))
            return False
        refusal = self.executor.refusal(call.block["name"], call.block["input"])
        if refusal is not None or call.tool is None:
            await self._end_unrun(call, refusal or Outcome("", "unknown_tool"))
            return False
        waits_for = await self._waits_for(call, call.tool)
        if waits_for:
            await self._wait(call, waits_for)
        return not self.waiting

    async def _waits_for(self, call: Call, tool: Tool) -> WaitsFor:
        if call.row.decision:
            return WaitsFor.NOTHING
        if tool.waits_for != WaitsFor.NOTHING:
            call.needed = ApprovalNeeded(reason=await in_db(self.executor.question_mark))
            return tool.waits_for
        call.row.permission = await self.executor.permission(tool, call.block["input"])
        if call.row.permission:
            return WaitsFor.APPROVAL
        place = (call.row.round, call.row.position)
        needed = await in_db(self.executor.approval_needed, tool, call.block["input"], place)
        call.needed = needed or NOTHING_NEEDED
        call.row.covered = call.needed.covered
        return WaitsFor.NOTHING if needed is None or needed.covered else WaitsFor.APPROVAL

    async def _wait(self, call: Call, waits_for: WaitsFor) -> None:
        user_id = self.executor.user_id
        permission = call.row.permission
        await in_db(
            services.toolcall_wait,
            user_id=user_id,
            id=call.row.id,
            waits_for=waits_for,
            permission=permission,
        )
        asked: Waiting = ApprovalRequested(
            call.id,
            call.row.name,
            call.row.input,
            permission or None,
            call.needed.reason or None,
            call.needed.always or None,
            call.needed.reach,
        )
        if waits_for == WaitsFor.ANSWER:
            asked = Question(call.id, str(call.row.input.get("question", "")), call.needed.reason or None)
        self.waiting.append(asked)
        self._queue.put_nowait(asked)

    async def _end_unrun(self, call: Call, outcome: Outcome) -> None:
        self._announce(call)
        await self._finish(call, outcome)
        if self._taken:
            raise TurnTaken

    async def _run(self, calls: list[Call]) -> None:
        """Runs these calls side by side; all end, whatever happens to one of them."""
        if not calls:
            return
        rows = [call.row for call in calls]
        if not await in_db(services.toolcalls_start, user_id=self.executor.user_id, rows=rows):
            raise TurnTaken
        for call in calls:
            self._announce(call)
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
        outcome = await self.executor.execute(
            call.tool,
            call.block["input"],
            call_id=call.row.id,
            emit=emit,
            permission=call.row.permission if approved and call.row.permission else None,
            answer=call.row.answer,
        )
        await self._finish(call, outcome)

    async def _finish(self, call: Call, outcome: Outcome) -> None:
        user_id = self.executor.user_id
        finished = await in_db(services.toolcall_finish, user_id=user_id, id=call.row.id, outcome=outcome)
        if not finished:
            self._taken = True
            return
        call.outcome = outcome
        call.row.result, call.row.is_error = outcome.result, outcome.is_error
        call.row.duration_ms = outcome.duration_ms
        shown = ToolResult(call.id, call.row.name, outcome.result, outcome.is_error, outcome.duration_ms)
        self._queue.put_nowait(shown)

    def _announce(self, call: Call) -> None:
        shown = ToolStart(call.id, call.row.name, call.row.input, call.row.covered or None)
        self._queue.put_nowait(shown)


def _ended(row: ToolCall) -> Outcome | None:
    if row.is_open:
        return None
    error_code = row.error_code or ("failed" if row.is_error else "")
    return Outcome(row.result, error_code, row.build_id, row.duration_ms, row.untrusted)
