"""One tool call of a program, through the pipeline that every tool call goes through; with its progress as lines for people, and the
question to the person at the other end: an MCP form, where the client has one and its token says that a person answers there."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

import anyio
from django.urls import reverse
from django.utils import timezone
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
    TextContent,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from apps.accounts.models import Scope, User
from apps.agent.models import ToolCall
from apps.agent.selectors import ConversationTaint
from apps.agent.services import grant_covering_program, toolcall_store
from apps.agent.tools.base import MAY_BE_BEHIND, ApprovalQuery, Reach, Tool, tool_title
from apps.agent.tools.results import ToolOutcome, result_json
from apps.agent.turn.executor import ToolExecutor, executor_for
from apps.core.db.pool import in_db
from apps.core.db.writing import writing_for
from apps.core.errors import Conflict, InvalidInput, NotAuthenticated, NotFound
from apps.core.http.drf import parse_json
from apps.core.text import depth_of, revealed, storable, truncated
from apps.gateway.models import WaitingCall

from .approvals import ALWAYS, NO, ONCE, call_decide, call_digest, call_take, call_wait
from .callers import STDIO, Caller, scope_for
from .offering import tool_called

MAX_INPUT_DEPTH = 32
STOPPED = (
    "The client cancelled this, or went away, while it was running. It may still have taken effect."
)
WAITS = (
    "This was not run: {reason} The user has to allow it at {url}. Tell them so, and call again with the same input once they "
    "have."
)
DECLINED = (
    "The user said no to this call; it was not run. Do not try it again: ask what they want instead."
)
NOT_APPROVED = (
    "This was not run: version {version} of {capability} has yet to be approved by the user, at {url}. Tell them so, and call "
    "again once they have."
)
SETTINGS_ASK = "The user's settings ask before each call of this tool."

Context = ServerRequestContext[Any, Any]

_running: set[asyncio.Task[CallToolResult | InputRequiredResult]] = set()


@dataclass(kw_only=True)
class Call:
    """A call that was looked at: it has an `outcome`, waits, or runs."""

    executor: ToolExecutor
    row: ToolCall
    tool: Tool | None
    arguments: dict[str, Any]
    outcome: ToolOutcome | None = None
    reach: dict[str, Any] = field(default_factory=dict)
    waiting: WaitingCall | None = None


async def tool_call(
    caller: Caller, context: Context, params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    """The result of a call. What goes wrong is in it, as an error that says what to do next.

    The call runs as a task of its own: it is cancelled once, and has ended with all that it began when this returns or raises.
    """
    with writing_for(caller.user_id):  # which its task takes along
        task = asyncio.create_task(_call(caller, context, params))
    gone = asyncio.create_task(caller.gone.wait())
    _running.add(task)
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not task.done():
            task.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({task})
        _running.discard(task)
    return _result(ToolOutcome(STOPPED, "cancelled")) if task.cancelled() else task.result()


async def calls_stop() -> None:
    """Cancels all calls of this process and waits for their end."""
    for task in tuple(_running):
        task.cancel()
    await asyncio.gather(*_running, return_exceptions=True)


async def _call(
    caller: Caller, context: Context, params: CallToolRequestParams
) -> CallToolResult | InputRequiredResult:
    info = context.session.client_params
    client = info.client_info.name if info else ""
    call = await in_db(_prepare, caller, params.name, params.arguments or {}, client)
    if call.waiting is not None:
        answer = await answer_of(caller, context, params, call.waiting)
        if isinstance(answer, InputRequiredResult):
            return answer
        await in_db(_settle, caller, call, call.waiting, answer)
    if call.outcome is None and call.tool is not None:
        call.outcome = await _run(context, call, call.tool)
    assert call.outcome is not None  # noqa: S101 - without a tool there is a refusal
    await in_db(toolcall_store, call.row, call.outcome)
    return _result(call.outcome)


async def _run(context: Context, call: Call, tool: Tool) -> ToolOutcome:
    steps = 0

    async def emit(data: dict[str, Any]) -> None:
        nonlocal steps
        steps += 1
        text = progress_text(call.executor.scrubber.json(storable(data)))
        await context.session.report_progress(steps, message=text)

    call.row.started_at = timezone.now()
    try:
        return await call.executor.execute(
            tool, call.arguments, call_id=call.row.id, emit=emit, reach=call.reach
        )
    except asyncio.CancelledError:
        await in_db(toolcall_store, call.row, ToolOutcome(STOPPED, "cancelled"))
        raise


def _result(outcome: ToolOutcome) -> CallToolResult:
    """Text, and what it holds where that is JSON of Izzy's own making."""
    data = None if outcome.error_code or outcome.untrusted else result_json(outcome.result)
    if isinstance(data, list):
        data = {"results": data}
    return CallToolResult(
        content=[TextContent(type="text", text=outcome.result)],
        structured_content=data if isinstance(data, dict) else None,
        is_error=outcome.error_code != "",
    )


def _prepare(caller: Caller, name: str, given: dict[str, Any], client: str) -> Call:
    if caller.program == STDIO and not User.objects.filter(pk=caller.user_id, is_active=True).exists():
        raise NotAuthenticated("This account is closed.")
    user_id = caller.user_id
    executor = executor_for(
        user_id=user_id,
        conversation_id=None,
        turn_id=None,
        taint=ConversationTaint(user_id=user_id, shown_untrusted=lambda: True),
        use_memory=True,
        by_program=True,
    )
    tool = tool_called(user_id, name)
    wrong = _unreadable(given)
    block = {"id": "", "name": storable(name), "input": {} if wrong else given}
    row = executor.row(block, tool.tier if tool else "")
    call = Call(executor=executor, row=row, tool=tool, arguments=given)
    call.outcome = wrong or executor.refusal(tool, name, given)
    if call.outcome is None and tool is not None:
        _check_allowed(caller, call, tool, client)
    return call


def _unreadable(arguments: dict[str, Any]) -> ToolOutcome | None:
    """Why an input cannot even be looked at: too deep, NaN, NUL, lone surrogates."""
    try:
        if depth_of(arguments) > MAX_INPUT_DEPTH:
            raise InvalidInput(f"The input is nested more than {MAX_INPUT_DEPTH} levels deep.")
        parse_json(json.dumps(arguments).encode(), "input")
    except InvalidInput as error:
        return ToolOutcome(f"{error.message} Nothing was run.", "invalid_input")
    return None


def _check_allowed(caller: Caller, call: Call, tool: Tool, client: str) -> None:
    """Ends the call, has it wait, or lets it run: by the token's scope, the user's settings and what the call can reach."""
    if scope_for(tool) == Scope.WRITE and not caller.may_write:
        call.outcome = ToolOutcome("This API token lacks the scope write.", "missing_scope")
        return
    needed = tool.permission(caller.user_id, call.arguments) if tool.permission else None
    if needed:
        url = caller.base_url + reverse("capabilities:overview", args=[needed["capability"]])
        text = NOT_APPROVED.format(url=url, **{k: needed[k] for k in ("version", "capability")})
        call.outcome = ToolOutcome(text, "not_approved")
        return
    asks = call.executor.approval(tool) == "ask"
    query = ApprovalQuery(user_id=caller.user_id, arguments=call.arguments)
    reach = tool.reach(query) if tool.reach else None
    call.reach = call.row.reach = reach.to_json() if reach else {}
    if not asks and reach is None:
        return
    if not asks and reach is not None:
        if caller.reaches_out:
            call.row.covered = "token"
        elif grant_covering_program(caller.user_id, caller.program, reach):
            call.row.covered = "always"
        if call.row.covered:
            return
    _have_wait(caller, call, tool, client, reach)


def _have_wait(caller: Caller, call: Call, tool: Tool, client: str, reach: Reach | None) -> None:
    scrub = call.executor.scrubber
    digest = call_digest(tool.name, call.arguments, call.reach)
    if call_take(user_id=caller.user_id, program=caller.program, digest=digest):
        call.row.decision = ToolCall.Decision.APPROVED
        return
    call.waiting = call_wait(
        user_id=caller.user_id,
        program=caller.program,
        client=scrub.text(storable(client)),
        tool=tool.name,
        shown_input=call.row.input,
        digest=digest,
        reach=call.reach,
        reason=scrub.text(reach.reason.removeprefix(MAY_BE_BEHIND).strip() if reach else SETTINGS_ASK),
    )


def _settle(caller: Caller, call: Call, waiting: WaitingCall, answer: str) -> None:
    """Ends a call that waits, or has it run where the person has just said yes."""
    if answer and not waiting.decision:
        try:
            call_decide(user_id=caller.user_id, call_id=waiting.pk, decision=answer)
        except (Conflict, NotFound):  # decided on the page meanwhile: the call made again says how
            answer = ""
        else:
            waiting.decision = answer
    if answer in (ONCE, ALWAYS):
        taken = call_take(user_id=caller.user_id, program=caller.program, digest=waiting.digest)
        if taken or (answer == ALWAYS and waiting.reach):  # which leaves no yes to be used up
            call.row.decision = ToolCall.Decision.APPROVED
            return
        # The same call, made meanwhile, has used up the yes.
    url = caller.base_url + reverse("gateway:calls")
    if waiting.decision == NO:
        call.row.decision = ToolCall.Decision.DECLINED
        call.outcome = ToolOutcome(DECLINED, "declined")
    else:
        call.outcome = ToolOutcome(WAITS.format(reason=waiting.reason, url=url), "waits_for_approval")


KEY = "approval"
REMEMBER = "always"
SHOWN_CHARS = 4_000
"""A longer input is for the page alone: nobody says yes to what they cannot see."""


async def answer_of(
    caller: Caller,
    context: ServerRequestContext[Any, Any],
    params: CallToolRequestParams,
    waiting: WaitingCall,
) -> str | InputRequiredResult:
    """`once`, `always` or `no`; "" where nobody is asked or answers. With the stateless protocol first the question, which
    the client brings back answered when it calls again."""
    shown = revealed(json.dumps(waiting.input, ensure_ascii=False, indent=2))
    if waiting.decision or not caller.person_answers or len(shown) > SHOWN_CHARS:
        return ""
    can = context.session.client_capabilities
    form = can.elicitation if can else None
    if form is None or (form.form is None and form.url is not None):
        return ""
    question = _question(waiting, shown)
    if context.protocol_version in MODERN_PROTOCOL_VERSIONS:
        if params.input_responses and params.request_state == str(waiting.pk):
            answer = params.input_responses.get(KEY)
            return _meaning(answer) if isinstance(answer, ElicitResult) else ""
        request = ElicitRequest(params=question)
        return InputRequiredResult(input_requests={KEY: request}, request_state=str(waiting.pk))
    try:
        return _meaning(
            await context.session.elicit_form(
                question.message, question.requested_schema, context.request_id
            )
        )
    except MCPError:  # the client declared what it cannot do, or cannot do it now
        return ""


def _question(waiting: WaitingCall, shown: str) -> ElicitRequestFormParams:
    properties = {}
    if waiting.reach:
        description = "Allow it from now on, with any input, until the capability changes."
        properties[REMEMBER] = {
            "type": "boolean",
            "title": "Do not ask again",
            "description": description,
            "default": False,
        }
    return ElicitRequestFormParams(
        message=f"{tool_title(waiting.tool)}? {waiting.reason}\nInput:\n{shown}",
        requested_schema={"type": "object", "properties": properties},
    )


def _meaning(answer: ElicitResult) -> str:
    if answer.action == "decline":
        return NO
    if answer.action != "accept":
        return ""
    return ALWAYS if (answer.content or {}).get(REMEMBER) is True else ONCE


MAX_CHARS = 300


def progress_text(data: dict[str, Any]) -> str:
    """`Searching: coffee; tea`, `Found 3`, or what a capability printed; other data as JSON."""
    status, rest = str(data.get("status", "")), {k: v for k, v in data.items() if k != "status"}
    if status == "output":
        return truncated(str(data.get("text", "")).strip(), MAX_CHARS)
    if status == "found":
        return f"Found {data.get('count', 0)}"
    if status == "queued":
        return f"Waiting for a sandbox, {data.get('ahead', 0)} before this"
    words = status.replace("_", " ").capitalize()
    if isinstance(searches := data.get("searches"), list):
        return truncated(
            f"{words}: {'; '.join(' '.join(map(str, each)) for each in searches)}", MAX_CHARS
        )
    if isinstance(query := data.get("query"), str):
        return truncated(f"{words}: {query}", MAX_CHARS)
    more = json.dumps(rest, ensure_ascii=False, default=str) if rest else ""
    return truncated(" ".join(filter(None, [words, more])), MAX_CHARS)
