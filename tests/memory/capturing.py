"""Shared by the tests of capture: saying something, having it read, and looking at what came of it."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.core.ids import uuid7
from apps.memory.capture.reader import Tally, users_read
from apps.memory.capture.selectors import capture_status
from apps.memory.capture.windows import Utterance, windows_add
from apps.memory.models import CaptureWindow, Memory, Trust
from tests.peers.anthropic_server import Reply, reply, tool
from tests.peers.capture_model import Rule

MORNING = datetime(2026, 5, 4, 8, 0, tzinfo=UTC)


def said(text: str, role: str = "user", **values: Any) -> Utterance:
    """A message; a user's words are theirs, an assistant's the assistant's."""
    trust = Trust.USER if role == "user" else Trust.ASSISTANT
    given = {"message_id": uuid7(), "speaker": role, "said_at": MORNING, "trust": trust}
    return Utterance(**{**given, **values, "role": role, "text": text})


def talk(*texts: str, start: datetime = MORNING) -> list[Utterance]:
    """User and assistant in turns, a minute apart."""
    roles = ("user", "assistant")
    return [
        said(text, roles[index % 2], position=index, said_at=start + timedelta(minutes=index))
        for index, text in enumerate(texts)
    ]


def add(
    user: User, messages: Sequence[Utterance], *, conversation: UUID | None = None, **options: Any
) -> UUID:
    """Adds what was said to be read at once; returns the conversation."""
    place = conversation or uuid7()
    windows_add(
        user_id=user.pk, conversation_id=place, messages=messages, **{"at_once": True, **options}
    )
    return place


async def read(user: User, *, any_time: bool = False) -> Tally:
    """Reads what is due, as the worker does."""
    return await users_read([user.pk], any_time=any_time)


async def captured(user: User, *messages: Utterance, **options: Any) -> Tally:
    """Adds and reads."""
    await in_db(add, user, messages, **options)
    return await read(user)


async def notes(user: User, **wanted: Any) -> list[str]:
    """The texts of the user's notes, oldest first."""
    rows = Memory.objects.for_user(user).filter(**(wanted or {"status": "active"})).order_by("id")
    return await in_db(lambda: [note.content for note in rows])


async def note(user: User, **wanted: Any) -> Memory:
    return await in_db(lambda: Memory.objects.for_user(user).get(**wanted))


async def windows(user: User) -> list[CaptureWindow]:
    return await in_db(lambda: list(CaptureWindow.objects.for_user(user).order_by("id")))


LINZ = Rule("Linz", "The user lives in Linz.")
YES = {"worth_remembering": True, "reason": "a fact"}


def items(*given: Any) -> Reply:
    """The extractor's answer with these items."""
    return reply(tool("save_items", {"items": list(given)}))


def item(content: Any, **values: Any) -> dict[str, Any]:
    """One item as the extractor writes it, with what `values` say otherwise."""
    return {
        "action": "add",
        "content": content,
        "kind": "fact",
        "importance": 3,
        "sensitive": False,
        "evidence": [1],
        **values,
    }


def add_later(user: User, *messages: Any) -> None:
    """Said in a chat that goes on: not to be read at once."""
    add(user, messages, at_once=False)


async def status(user: User) -> Any:
    return await in_db(capture_status, user.pk)
