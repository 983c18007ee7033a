"""MCP's server in the test's own process, before the official client: what it writes, what it marks, and calls at the same time."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from mcp import Client

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.core.db.writing import writer
from apps.gateway.mcp import resources
from apps.gateway.mcp.callers import STDIO, Caller
from apps.gateway.mcp.server import make_server
from apps.memory.notes.creation import memory_create

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def connect(alice: User) -> Callable[..., Client]:
    """`connect(**options)`: the client of a program of hers, where a person answers."""

    async def caller(context: Any) -> Caller:
        return Caller(user_id=alice.pk, program=STDIO, may_write=True, person_answers=True)

    return lambda **options: Client(make_server(caller), **options)


async def test_who_reads_a_note_of_theirs_writes_as_themselves(
    alice: User, connect: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """That it was read is noted, which needs the user's lock on PostgreSQL."""
    note = await in_db(lambda: memory_create(user_id=alice.pk, content="I keep bees."))
    writers: list[UUID | None] = []
    record = resources.uses_record

    def recorded(**use: Any) -> None:
        writers.append(writer.get())
        record(**use)

    monkeypatch.setattr(resources, "uses_record", recorded)
    async with connect() as client:
        read = await client.read_resource(f"izzy://notes/{note.note_id}")
    assert read.contents[0].text == "I keep bees."  # type: ignore[union-attr]
    assert writers == [alice.pk]
