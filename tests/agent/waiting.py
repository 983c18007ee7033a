"""Shared by the tests of waiting and interrupted turns: a tool that asks first, and the user's side of it."""

from typing import Any

from apps.accounts.models import User
from apps.agent import services
from apps.agent.models import ToolCall
from apps.agent.tools.base import Tier, ToolContext
from apps.agent.turn.events import Event, Response
from apps.core.db.pool import in_db
from tests.agent.turns import a_tool


class Shredder:
    """A side-effecting tool that remembers what it was told to shred."""

    def __init__(self) -> None:
        self.shredded: list[str] = []

    async def run(self, context: ToolContext, args: dict[str, Any]) -> str:
        self.shredded.append(args["what"])
        return f"shredded {args['what']}"


def last_response(events: list[Event]) -> Response:
    assert isinstance(events[-1], Response)
    return events[-1]


def asking(shredder: Shredder) -> Any:
    return a_tool("shred", shredder.run, Tier.SIDE_EFFECTING, approval="ask")


async def decide(user: User, call_id: str, approved: bool) -> ToolCall:
    return await in_db(
        services.toolcall_decide, user_id=user.pk, tool_call_id=call_id, approved=approved
    )


async def answer(user: User, call_id: str, text: str) -> ToolCall:
    return await in_db(services.toolcall_answer, user_id=user.pk, tool_call_id=call_id, text=text)


async def row_of(user: User, **which: Any) -> ToolCall:
    return await in_db(lambda: ToolCall.objects.for_user(user).get(**which))
