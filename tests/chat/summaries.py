"""A model server for tests of the rolling summary: it tells requests for a summary from those of a turn."""

from collections.abc import Callable
from typing import Any

from apps.accounts.models import User
from apps.chat.models import Conversation
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from tests.chat.client import Socket
from tests.peers.anthropic_server import AnthropicServer, Reply, reply

WORDS = "Some more words so that this message weighs something in the budget of the conversation. " * 6


def is_summary(request: dict[str, Any]) -> bool:
    return "You keep the record" in str(request.get("system", ""))


def summaries(model: AnthropicServer) -> list[dict[str, Any]]:
    """The requests for a summary."""
    return [request for request in model.messages if is_summary(request)]


def asked(model: AnthropicServer) -> list[dict[str, Any]]:
    """The requests of turns."""
    return [request for request in model.messages if not is_summary(request)]


def first_block(request: dict[str, Any]) -> str:
    return str(request["messages"][0]["content"][0]["text"])


def serve(
    model: AnthropicServer, summary: Reply | Callable[[dict[str, Any]], Reply] | None = None
) -> None:
    """Answers turns with a paragraph and requests for a summary with `summary` (default: a numbered one)."""

    def numbered(request: dict[str, Any]) -> Reply:
        return reply(f"Record number {len(summaries(model))}: the user collects stamps.")

    def answer(request: dict[str, Any]) -> Reply:
        if not is_summary(request):
            return reply(f"Answer {len(asked(model))}. {WORDS}")
        given = summary or numbered
        return given if isinstance(given, Reply) else given(request)

    model.fallback = answer


async def say(
    page: Socket, place: str, *texts: str, settle: bool = True, **values: Any
) -> dict[str, Any]:
    """Says these one after the other; returns the last acknowledgement. `settle`: waits for what goes on afterwards."""
    queued: dict[str, Any] = {}
    for text in texts:
        queued = await page.say(text, conversation=place, **values)
        await page.ended()
        if settle:
            await scheduler().idle()
    return queued


async def stored(user: User, place: str) -> Conversation:
    return await in_db(lambda: Conversation.objects.for_user(user).get(id=place))
