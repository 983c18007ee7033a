"""Writes of the agent: what the user says to a waiting call, and closing what was left open."""

from typing import Any
from uuid import UUID

from apps.agent.models import ToolCall


def toolcall_decide(*, user_id: UUID, tool_call_id: object, approved: bool) -> ToolCall:
    """Records the user's yes or no to a call that waits for approval; the turn may then be resumed.

    NotFound for another user's or an unknown call, Conflict (`not_waiting`) when it waits for no decision (any more).
    """
    raise NotImplementedError


def toolcall_answer(*, user_id: UUID, tool_call_id: object, text: object) -> ToolCall:
    """Records the user's answer (at most 20,000 characters) to a question; the turn may then be resumed.

    NotFound, Conflict as for `toolcall_decide`; InvalidInput for an empty text, TooLarge for a longer one.
    """
    raise NotImplementedError


def toolcalls_close_open(
    *, turn_id: UUID, round: int, blocks: list[dict[str, Any]], user_id: UUID, reason: str
) -> list[dict[str, Any]]:
    """Ends every open call of the turn's last round with an error result.

    `blocks` are the content blocks of the assistant message whose calls are open. `reason` is `stopped`,
    `interrupted`, `failed` or `superseded` (a new message came instead of an answer). Returns the `tool_result` blocks of all
    calls of that message, the finished ones with their own results, for one user message; [] when it has none.
    Idempotent.
    """
    raise NotImplementedError
