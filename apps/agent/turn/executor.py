"""Runs tool calls: one call through its checks and limits. `apps.agent.turn.rounds` runs the calls of a round."""

import asyncio
import logging
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import UUID

from apps.accounts.secrets import secret_values
from apps.accounts.selectors import preferences_for
from apps.agent.model.client import INCOMPLETE_INPUT
from apps.agent.models import ToolCall
from apps.agent.selectors import ConversationTaint
from apps.agent.services import grant_covering
from apps.agent.tools.base import (
    Approval,
    ApprovalQuery,
    Emit,
    Tier,
    Tool,
    ToolContext,
    ToolFailure,
    ToolOutput,
    find_tool,
)
from apps.agent.tools.results import Scrubber, ToolOutcome, result_text
from apps.agent.tools.schema import schema_error
from apps.core.errors import IzzyError
from apps.core.metrics.base import SLOW, counter, histogram
from apps.core.text import storable
from apps.core.traces import span

logger = logging.getLogger(__name__)

CRASHED = "tool_crashed"
CAPABILITY, CAPABILITY_PREFIX = "capability", "cap_"
TOOLS = counter(
    "izzy_tool_calls_total",
    "Tool calls that were run; the user's own tools count as `capability`.",
    "tool",
    "outcome",
)
TOOL_SECONDS = histogram("izzy_tool_seconds", "Time that a tool call ran.", "tool", buckets=SLOW)
MAY_HAVE_RUN = "It may still have taken effect: check before you call it again."
ASK_FOR_LESS = "Ask for less, or go on without it."
DETAIL_CHARS = 500
REASON_CHARS = 400
UNREADABLE = (
    "The input was cut off, was not a JSON object, or held characters that cannot be stored (NUL or lone surrogates), so "
    "nothing was run. Call again with a shorter input, or without these characters."
)

APPROVALS: dict[str, Approval] = {"allow": "allow", "ask": "ask", "never": "never"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalNeeded:
    """Why a call waits for the user's yes, and for what else that yes may hold."""

    # A sentence for the card where others' words may be behind it; "" where the user's settings ask.
    reason: str = ""
    always: bool = False  # whether a yes may become the user's setting for the tool
    reach: dict[str, Any] | None = None  # of what calls it may hold, in the conversation or always
    covered: str = ""  # which lasting yes holds already: the call runs


@dataclass(kw_only=True)
class ToolExecutor:
    """The pipeline every tool call goes through, for one turn. Make one with `executor_for`.

    `approvals` are the user's preferences by tool name; `secrets` the values that must not appear anywhere;
    `tools` those of the turn that no registry knows. `message_id`, `use_memory` and `by_program` are for the tools, see
    `ToolContext`.
    """

    user_id: UUID
    conversation_id: UUID | None
    turn_id: UUID | None
    taint: ConversationTaint
    approvals: Mapping[str, str] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    message_id: UUID | None = None
    use_memory: bool = False
    by_program: bool = False
    tools: Mapping[str, Tool] = field(default_factory=dict)

    @cached_property
    def scrubber(self) -> Scrubber:
        """Made at first use and kept for the turn."""
        return Scrubber(self.secrets)

    def find(self, name: str) -> Tool | None:
        """The tool that a call of this name runs."""
        return self.tools.get(name) or find_tool(name)

    def approval(self, tool: Tool) -> Approval:
        """The approval it needs by the user's preferences, else by the tool itself."""
        set_to = self.approvals.get(tool.name) or self.approvals.get(tool.set_with, "")
        return APPROVALS.get(set_to, tool.approval)

    def refusal(self, tool: Tool | None, name: str, arguments: dict[str, Any]) -> ToolOutcome | None:
        """Why this call is not run at all: the checks before anything happens. None when it may run."""
        if tool is None:
            return ToolOutcome(
                f"There is no tool called {name[:100]}. Use one of those you were given.", "unknown_tool"
            )
        if INCOMPLETE_INPUT in arguments:
            return ToolOutcome(UNREADABLE, "incomplete_input")
        wrong = schema_error(tool.input_schema, arguments)
        if wrong:
            text = f"The input does not fit: {self.scrubber.text(wrong).rstrip('.')}. Correct it and call again."
            return ToolOutcome(text, "invalid_input")
        if self.approval(tool) == "never":
            text = f"The user's settings never allow {name}. Do without it, or tell the user where it is set."
            return ToolOutcome(text, "not_allowed")
        return None

    def row(self, block: dict[str, Any], tier: str, round: int = 0, position: int = 0) -> ToolCall:
        """A row for a call of this turn, not stored yet; its input is scrubbed."""
        return ToolCall(
            user_id=self.user_id,
            conversation_id=self.conversation_id,
            turn_id=self.turn_id,
            round=round,
            position=position,
            tool_use_id=block["id"][:128],
            name=block["name"][:128],
            tier=tier,
            input=self.scrubber.json(storable(block["input"])),
        )

    async def execute(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        *,
        call_id: UUID,
        emit: Emit,
        permission: dict[str, Any] | None = None,
        reach: dict[str, Any] | None = None,
        answer: str = "",
    ) -> ToolOutcome:
        """Runs the handler within its limits; every failure becomes an outcome that says what to do next.

        `permission` is what the user has allowed for this call beyond the tool itself, `reach` what the yes to it was bound to,
        `answer` what they said to it.
        """
        context = self.context(
            tool_call_id=call_id, emit=emit, permission=permission, reach=reach, answer=answer
        )
        started, code = time.monotonic(), ""
        shown = CAPABILITY if tool.name.startswith(CAPABILITY_PREFIX) else tool.name
        traced = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": shown,
            "gen_ai.tool.call.id": str(call_id),
        }
        try:
            with span(f"execute_tool {shown}", traced):
                async with asyncio.timeout(tool.timeout) as limit:
                    output = await tool.run(context, arguments)
        except ToolFailure as error:
            output, code = ToolOutput(str(error), untrusted=error.untrusted), "tool_failed"
        except IzzyError as error:
            output, code = ToolOutput(error.message, untrusted=error.untrusted), error.code
        except Exception as error:  # noqa: BLE001  a tool's own bug must not end the turn
            if isinstance(error, TimeoutError) and limit.expired():
                ending = MAY_HAVE_RUN if tool.tier == Tier.SIDE_EFFECTING else ASK_FOR_LESS
                output = f"The tool did not finish within {tool.timeout:g} seconds. {ending}"
                code = "timeout"
            else:
                output, code = self._crashed(tool, error), CRASHED
        if not isinstance(output, ToolOutput):
            output = ToolOutput(output)
        # What a tool that reads others' words stumbles over may be those very words.
        quoted = tool.untrusted and not output.own_words and code in ("", CRASHED)
        text = result_text(
            output.data, limit=tool.result_limit, scrubber=self.scrubber, untrusted=quoted
        )
        took = round((time.monotonic() - started) * 1000)
        TOOLS.add(shown, code or "ok")
        TOOL_SECONDS.observe(took / 1000, shown)
        return ToolOutcome(text, code, output.build_id or "", took, quoted or output.untrusted)

    def context(self, **call: Any) -> ToolContext:
        """Context for a call of this turn; `call` holds the fields that differ by call."""
        return ToolContext(
            user_id=self.user_id,
            conversation_id=self.conversation_id,
            turn_id=self.turn_id,
            message_id=self.message_id,
            use_memory=self.use_memory,
            by_program=self.by_program,
            taint=self.taint,
            **call,
        )

    def approval_needed(
        self, tool: Tool, arguments: dict[str, Any], place: tuple[int, int] = (0, 0)
    ) -> ApprovalNeeded | None:
        """Why this call, at its round and position, waits for the user's yes; None where it runs unasked. Synchronous."""
        if self.approval(tool) == "ask":
            return ApprovalNeeded(always=not tool.set_with and not self.taint.is_tainted)
        allowed = tool.name in self.approvals or tool.set_with in self.approvals
        if self.conversation_id is None or not (tool.reach or tool.takes):
            return None
        query = self._query(arguments, place)
        reach = tool.reach(query) if tool.reach and not allowed else None
        # What reaches nothing and takes nothing needs no look at whose words were read.
        if not (reach or tool.takes) or not self.taint.is_tainted:
            return None
        if tool.takes and (reason := tool.takes(query)):
            return ApprovalNeeded(reason=self._shown(reason))
        if reach is None:
            return None
        grant = grant_covering(self.user_id, self.conversation_id, reach)
        covered = "" if grant is None else "conversation" if grant.conversation_id else "always"
        return ApprovalNeeded(reason=self._shown(reach.reason), reach=reach.to_json(), covered=covered)

    def reach(
        self, tool: Tool, arguments: dict[str, Any], place: tuple[int, int] = (0, 0)
    ) -> dict[str, Any]:
        """All that a yes to this call lets it reach, as things stand; {} for nothing. Synchronous."""
        reach = tool.reach(self._query(arguments, place)) if tool.reach else None
        return reach.to_json() if reach else {}

    def _query(self, arguments: dict[str, Any], place: tuple[int, int]) -> ApprovalQuery:
        return ApprovalQuery(
            user_id=self.user_id,
            conversation_id=self.conversation_id,
            arguments=arguments,
            own=self.taint.own,
            turn_id=self.turn_id,
            place=place,
        )

    def _shown(self, reason: str) -> str:
        return self.scrubber.text(reason)[:REASON_CHARS]

    def _crashed(self, tool: Tool, error: Exception) -> str:
        detail = self.scrubber.text(f"{type(error).__name__}: {error}")[:DETAIL_CHARS]
        where = self.scrubber.text("".join(traceback.format_exception(error)))
        logger.error("tool %s failed: %s", tool.name, where)
        return f"The tool failed inside ({detail}). Do not repeat the same call; go on without it or tell the user."


def executor_for(
    *,
    user_id: UUID,
    conversation_id: UUID | None,
    turn_id: UUID | None,
    taint: ConversationTaint | None = None,
    approvals: Mapping[str, str] | None = None,
    **options: Any,
) -> ToolExecutor:
    """An executor with the stored secrets and, unless `approvals` are given, the user's, read from the database; `options` are
    further fields of `ToolExecutor`. Without `taint` only what tools read counts as others' words."""
    return ToolExecutor(
        user_id=user_id,
        conversation_id=conversation_id,
        turn_id=turn_id,
        taint=taint or ConversationTaint(user_id=user_id, conversation_id=conversation_id),
        approvals=preferences_for(user_id).tool_approval if approvals is None else approvals,
        secrets=tuple(secret_values(user_id)),
        **options,
    )
