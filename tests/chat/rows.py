"""Rows of the tables after a turn, as the tests compare them."""

import json
from typing import Any
from uuid import UUID

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Conversation, Message, Turn
from apps.core.db.pool import in_db


async def conversation(user: User, **values: Any) -> str:
    """A conversation with a title of its own, so that no request for one mixes with the script of a test."""
    row = await in_db(lambda: conversation_create(user_id=user.id, title="A test", **values))
    return str(row.id)


async def turn(turn_id: str) -> Turn:
    return await in_db(lambda: Turn.objects.unscoped().get(id=turn_id))


async def calls(turn_id: str) -> list[ToolCall]:
    return await in_db(
        lambda: list(ToolCall.objects.unscoped().filter(turn_id=turn_id).order_by("round", "position"))
    )


async def messages(conversation_id: str | UUID) -> list[tuple[str, str, Any]]:
    """`(role, kind, blocks)` of the messages in force; the block of context is left out."""
    rows = await in_db(
        lambda: list(
            Message.objects.unscoped()
            .filter(conversation_id=conversation_id, superseded_by=None)
            .order_by("position")
        )
    )
    return [(row.role, row.kind, _words(json.loads(row.blocks))) for row in rows]


async def released(conversation_id: str) -> bool:
    """Whether nobody holds the conversation's lease."""
    row = await in_db(lambda: Conversation.objects.unscoped().get(id=conversation_id))
    return not row.runner


def _words(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in blocks if not str(block.get("text", "")).startswith("<context>")]


def said(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text}]
