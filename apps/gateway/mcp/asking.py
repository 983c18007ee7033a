"""Asking the person at the other end: an MCP form, where the client has one and its token says that a person answers there."""

import json
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import (
    CallToolRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    InputRequiredResult,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from apps.agent.tools.base import tool_title
from apps.core.text import revealed
from apps.gateway.models import WaitingCall

from .approvals import ALWAYS, NO, ONCE
from .callers import Caller

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
