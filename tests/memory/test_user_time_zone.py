"""A day that Izzy writes into what a model reads, or reads in what it says, is one of the user's own time zone."""

from datetime import UTC, datetime

import pytest

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.chat.conversations.services import conversation_create
from apps.chat.models import Message, Role, Turn, TurnStatus
from apps.chat.summary.selectors import Budget, compact_job_until, extract
from apps.chat.turns.store import message_append
from apps.core.db.pool import in_db
from apps.gateway.mcp.resources import RECENT, resource_read
from apps.memory.models import Memory
from apps.memory.notes.changes import memory_update
from apps.memory.notes.creation import memory_create, notes_reindex
from apps.search.selectors import context
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.tools import Tools

pytestmark = pytest.mark.django_db(transaction=True)

LATE = datetime(2026, 4, 30, 15, 30, tzinfo=UTC)
"""The first of May has begun in Tokyo."""


@pytest.fixture
def tea(alice: User) -> Memory:
    preferences_update(user_id=alice.pk, time_zone="Asia/Tokyo")
    row = memory_create(
        user_id=alice.pk, content="The shop has green tea.", tags=["tea"], valid_from=LATE
    )
    Memory.objects.unscoped().filter(pk=row.pk).update(created_at=LATE, updated_at=LATE)
    notes_reindex(alice.pk, [Memory.objects.unscoped().get(pk=row.pk)])
    return row


def test_what_was_found_stands_under_that_day(alice: User, tea: Memory) -> None:
    assert "2026-05-01 memory" in context(alice.pk, "green tea").text


def test_recent_notes_of_a_client_have_it(alice: User, tea: Memory) -> None:
    (listed,) = resource_read(alice.pk, RECENT)
    assert listed.text.endswith("2026-05-01)")


async def test_a_search_as_of_a_day_means_it(alice: User, tea: Memory) -> None:
    end = LATE.replace(hour=20)
    await in_db(lambda: memory_update(user_id=alice.pk, memory_id=tea.pk, valid_to=end))
    tools = Tools(user_id=alice.pk)
    for moment, texts in (
        ("2026-05-01T01:00", [tea.content]),
        ("2026-05-01", []),
        ("2026-05-02", []),
        ("2026-04-30T16:00:00Z", [tea.content]),
    ):
        found = await tools.call("memory_search", query="green tea", as_of=moment)
        assert [hit["text"] for hit in found] == texts, moment


async def test_deep_memory_sums_up_by_it(alice: User, tea: Memory, model: AnthropicServer) -> None:
    model.add(reply(tool("search_memory", {"searches": [["tea", "green"]]})), reply("Green tea."))
    await Tools(user_id=alice.pk).call("deep_memory", query="Which tea?")
    assert "2026-05-01] The shop has green tea." in str(model.messages[1])


def test_a_conversation_is_summed_up_by_it(alice: User, tea: Memory) -> None:
    place = conversation_create(user_id=alice.pk, title="Tea")
    turn = Turn.objects.create(user=alice, conversation=place, state=TurnStatus.DONE)
    message_append(turn, role=Role.USER, blocks=[{"type": "text", "text": "I drink tea."}], round=0)
    Message.objects.unscoped().update(created_at=LATE)
    job = compact_job_until(place, 10, Budget(10_000))
    assert 'at="2026-05-01 00:30"' in job.texts[0]
    assert "- 2026-05-01 00:30 The user: “I drink tea.”" in extract("", job.turns, tokens=200)
