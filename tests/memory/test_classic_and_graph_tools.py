"""The older names of the note tools, and the tools that link notes: through their schemas, on a real memory."""

from typing import Any

import jsonschema
import pytest

from apps.accounts.models import User
from apps.agent.tools.base import Tier, ToolFailure, find_tool, tools_for
from apps.core.db.pool import in_db
from apps.core.errors import InvalidInput, IzzyError, NotFound
from apps.core.ids import note_id, parse_id, uuid7
from apps.memory.models import Memory, MemoryEdge
from apps.memory.notes.changes import cycle_advance, memory_delete, memory_update
from apps.memory.notes.selectors import memory_get
from tests.memory.conftest import MakeNote
from tests.tools import Tools

pytestmark = pytest.mark.django_db(transaction=True)


async def call(user: User | None, name: str, **args: Any) -> Any:
    tool = find_tool(name)
    assert tool is not None
    jsonschema.validate(args, tool.input_schema)
    tools = Tools(user_id=user.pk if user else uuid7(), use_memory=user is not None)
    data = await tools.call(name, **args)
    assert not tools.progress
    return data


async def recalled(user: User, *keywords: str, **options: Any) -> list[str]:
    result = await call(user, "recall_memory", keywords=list(keywords), **options)
    assert result["count"] == len(result["memories"])
    return [memory["text"] for memory in result["memories"]]


@pytest.mark.parametrize(
    ("name", "toolset", "tier"),
    [
        ("store_memory", "classic", Tier.SIDE_EFFECTING),
        ("recall_memory", "classic", Tier.READ_ONLY),
        ("link_memories", "notes", Tier.SIDE_EFFECTING),
        ("related_memories", "notes", Tier.READ_ONLY),
        ("deep_memory", "notes", Tier.READ_ONLY),
    ],
)
def test_each_is_in_its_toolset_and_tier(name: str, toolset: str, tier: Tier) -> None:
    tool = find_tool(name)
    assert tool is not None
    assert (tool.toolset, tool.tier) == (toolset, tier)
    assert name in {offered.name for offered in tools_for([toolset])}
    assert name not in {offered.name for offered in tools_for(["web"])}


@pytest.mark.parametrize(
    ("given", "tier", "priority", "rate"),
    [
        ({}, "long_term", 0.9, 0.005),
        ({"tier": "long_term"}, "long_term", 0.9, 0.005),
        ({"tier": "short_term"}, "short_term", 0.6, 0.02),
    ],
)
async def test_storing_gives_each_tier_its_documented_priority_and_decay(
    alice: User, given: dict[str, str], tier: str, priority: float, rate: float
) -> None:
    stored = await call(alice, "store_memory", content="User has a cat.", tags=["pet", "cat"], **given)
    note = await in_db(memory_get, alice.pk, parse_id(stored["note_id"]))
    assert (note.tier, note.priority, note.decay_rate, note.tags) == (
        tier,
        priority,
        rate,
        ["pet", "cat"],
    )
    assert (note.origin, note.trust) == ("assistant", "assistant")


async def test_both_names_share_one_store(alice: User) -> None:
    stored = await call(alice, "store_memory", content="User has a cat called Tibbles.", tags=["pet"])
    (hit,) = await call(alice, "memory_search", query="Tibbles")
    assert hit["note_id"] == stored["note_id"]
    saved = await call(alice, "memory_save", content="User has a hamster.", tags=["pet"])
    assert {
        memory["note_id"]
        for memory in (await call(alice, "recall_memory", keywords=["PET"]))["memories"]
    } == {
        stored["note_id"],
        saved["note_id"],
    }


async def test_recall_gives_the_documented_fields(alice: User, note: MakeNote) -> None:
    made = await in_db(note, alice, "User loves Thai food", tags=["cuisine"])
    for _ in range(10):
        await in_db(cycle_advance, user_id=alice.pk)
    result = await call(alice, "recall_memory", keywords=["cuisine"])
    (memory,) = result["memories"]
    assert memory == {
        "note_id": made.note_id,
        "text": "User loves Thai food",
        "tier": "long_term",
        "tags": ["cuisine"],
        "priority": 0.85,
        "created_at": made.created_at.isoformat(timespec="seconds"),
    }
    assert (await in_db(memory_get, alice.pk, made.pk)).access_count == 1


async def test_recall_orders_by_priority_and_is_limited_by_tier_and_tags(
    alice: User, note: MakeNote
) -> None:
    await in_db(note, alice, "food b", priority=0.5, tags=["x"])
    await in_db(note, alice, "food c", tier="short_term", tags=["y"])
    await in_db(note, alice, "food a", priority=0.8)
    await in_db(note, alice, "drink", priority=1.0)
    assert await recalled(alice, "food") == ["food a", "food c", "food b"]
    assert await recalled(alice, "food", tier="short_term") == ["food c"]
    assert await recalled(alice, "food", tags=["X", "y"]) == ["food c", "food b"]
    assert await recalled(alice, tags=["y"]) == ["food c"]


async def test_recall_gives_at_most_ten_and_no_faded_ones(alice: User, note: MakeNote) -> None:
    for number in range(12):
        await in_db(note, alice, f"food {number}", priority=0.04 if number == 0 else 0.9)
    found = await recalled(alice, "food")
    assert len(found) == 10
    assert "food 0" not in found


@pytest.mark.parametrize("keywords", [["a\x00"], ["\ud800"]])
async def test_recall_refuses_what_is_no_text(alice: User, keywords: list[str]) -> None:
    with pytest.raises(IzzyError):
        await call(alice, "recall_memory", keywords=keywords)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("store_memory", {"content": "x"}),
        ("recall_memory", {"keywords": ["x"]}),
        ("link_memories", {"source_id": "a", "target_id": "b"}),
        ("related_memories", {"note_id": "a"}),
        ("deep_memory", {"query": "x"}),
    ],
)
async def test_without_memory_each_says_so(name: str, args: dict[str, Any]) -> None:
    with pytest.raises(ToolFailure, match="No memory is configured"):
        await call(None, name, **args)


async def test_linked_notes_are_found_over_several_hops(alice: User, note: MakeNote) -> None:
    a, b, c, d = [await in_db(note, alice, text) for text in ("Anna", "Ben", "Carl", "Dora")]
    linked = await call(
        alice, "link_memories", source_id=a.note_id, target_id=b.note_id, relation="sister of"
    )
    assert (linked["relation"], linked["weight"]) == ("sister of", 1.0)
    await call(alice, "link_memories", source_id=c.note_id, target_id=b.note_id, weight=0.5)
    await call(alice, "link_memories", source_id=c.note_id, target_id=d.note_id)
    near = (await call(alice, "related_memories", note_id=a.note_id))["memories"]
    assert [(memory["text"], memory["depth"], memory["relation"]) for memory in near] == [
        ("Ben", 1, "sister of"),
        ("Carl", 2, "related"),
    ]
    assert (near[1]["weight"], near[1]["via"]) == (0.5, b.note_id)
    far = await call(alice, "related_memories", note_id=a.note_id, depth=3, limit=2)
    assert far["count"] == 2
    everything = await call(alice, "related_memories", note_id=a.note_id, depth=5)
    assert [memory["text"] for memory in everything["memories"]] == ["Ben", "Carl", "Dora"]


async def test_what_waits_for_review_or_was_put_away_is_neither_shown_nor_passed(
    alice: User, note: MakeNote
) -> None:
    a, b, c = [await in_db(note, alice, text) for text in ("Anna", "Ben", "Carl")]
    for source, target in ((a, b), (b, c)):
        await call(alice, "link_memories", source_id=source.note_id, target_id=target.note_id)
    for status in ("pending", "archived"):
        await in_db(memory_update, user_id=alice.pk, memory_id=b.pk, status=status)
        assert (await call(alice, "related_memories", note_id=a.note_id, depth=3))["count"] == 0


async def test_a_superseded_note_says_so(alice: User, note: MakeNote) -> None:
    a, b = await in_db(note, alice, "New address"), await in_db(note, alice, "Old address")
    await call(alice, "link_memories", source_id=a.note_id, target_id=b.note_id, relation="supersedes")
    await in_db(lambda: Memory.objects.for_user(alice).filter(pk=b.pk).update(status="superseded"))
    (memory,) = (await call(alice, "related_memories", note_id=a.note_id))["memories"]
    assert memory["status"] == "superseded"


async def test_foreign_unknown_deleted_and_malformed_ids_are_named(
    alice: User, bob: User, note: MakeNote
) -> None:
    mine, his = await in_db(note, alice), await in_db(note, bob)
    gone = await in_db(note, alice, "gone")
    await in_db(memory_delete, user_id=alice.pk, memory_id=gone.pk)
    for wrong in (his.note_id, gone.note_id, note_id(uuid7()), "note-1", "", "x" * 5000):
        for source, target in ((mine.note_id, wrong), (wrong, mine.note_id)):
            with pytest.raises(NotFound, match="memory_search"):
                await call(alice, "link_memories", source_id=source, target_id=target)
        with pytest.raises(NotFound, match="memory_search"):
            await call(alice, "related_memories", note_id=wrong)
    with pytest.raises(InvalidInput):
        await call(alice, "link_memories", source_id=mine.note_id, target_id=mine.note_id)
    assert not await in_db(MemoryEdge.objects.unscoped().exists)
