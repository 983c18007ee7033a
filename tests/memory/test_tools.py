"""The note tools over the protocol alone: no database, no search."""

import json
from typing import Any

import jsonschema
import pytest

from apps.agent.tools.base import Tier, ToolContext, ToolFailure
from apps.agent.tools.registry import find_tool, tools_for
from apps.core.errors import NotFound
from apps.core.ids import uuid7
from apps.memory.tools.notes import NOTE_TOOLS

NAMES = ["memory_delete", "memory_save", "memory_search", "memory_update"]


class Recorder:
    """A memory that notes down what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []

    async def search(self, *args: Any, **options: Any) -> list[dict[str, Any]]:
        self.asked.append(("search", args, options))
        return [
            {"note_id": "note-1", "text": "tea", "score": 0.9, "source": "memory", "created_at": "2026-05-01"}
        ]

    async def save(self, *args: Any, **options: Any) -> dict[str, Any]:
        self.asked.append(("save", args, options))
        return {"note_id": "note-1", "message": "Saved."}

    async def update(self, *args: Any, **options: Any) -> dict[str, Any]:
        self.asked.append(("update", args, options))
        return {"note_id": "note-1", "message": "Updated."}

    async def delete(self, *args: Any, **options: Any) -> dict[str, Any]:
        self.asked.append(("delete", args, options))
        raise NotFound("There is no such note.")


async def no_progress(data: dict[str, Any]) -> None:
    raise AssertionError("these tools report no progress")


def context(memory: Any) -> ToolContext:
    return ToolContext(
        user_id=uuid7(),
        conversation_id=None,
        turn_id=None,
        tool_call_id=uuid7(),
        emit=no_progress,
        memory=memory,
    )


async def call(name: str, memory: Any, **args: Any) -> Any:
    tool = next(tool for tool in NOTE_TOOLS if tool.name == name)
    jsonschema.validate(args, tool.input_schema)
    return await tool.handler(context(memory), args)


def test_the_four_tools_are_registered_in_the_toolset_notes_beside_links_and_deep_memory() -> None:
    offered = [tool.name for tool in tools_for(["notes"]) if tool.toolset == "notes"]
    assert offered == sorted([*NAMES, "deep_memory", "link_memories", "related_memories"])
    assert not any(tool.toolset == "notes" for tool in tools_for(["web"]))


@pytest.mark.parametrize(
    ("name", "tier", "timeout"),
    [
        ("memory_search", Tier.READ_ONLY, 15),
        ("memory_save", Tier.SIDE_EFFECTING, 10),
        ("memory_update", Tier.SIDE_EFFECTING, 10),
        ("memory_delete", Tier.SIDE_EFFECTING, 10),
    ],
)
def test_tiers_and_timeouts_are_as_documented(name: str, tier: Tier, timeout: float) -> None:
    tool = find_tool(name)
    assert tool is not None
    assert (tool.tier, tool.timeout, tool.approval) == (tier, timeout, "allow")


@pytest.mark.parametrize("tool", NOTE_TOOLS, ids=lambda tool: tool.name)
def test_every_tool_has_a_valid_schema_and_describes_its_parameters(tool: Any) -> None:
    jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    assert tool.input_schema["additionalProperties"] is False
    for name, parameter in tool.input_schema["properties"].items():
        assert parameter.get("description"), name
    json.dumps(tool.definition())


@pytest.mark.parametrize("name", ["memory_update", "memory_delete"])
def test_changing_tools_say_to_search_first(name: str) -> None:
    tool = find_tool(name)
    assert tool is not None
    assert "memory_search first" in tool.description


def test_saving_is_for_what_was_not_asked_to_be_saved_too() -> None:
    tool = find_tool("memory_save")
    assert tool is not None
    assert "without being asked" in tool.description


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("memory_search", {}),
        ("memory_search", {"query": "tea", "top_k": 21}),
        ("memory_search", {"query": "tea", "top_k": 0}),
        ("memory_search", {"query": 5}),
        ("memory_search", {"query": "tea", "limit": 5}),
        ("memory_save", {}),
        ("memory_save", {"content": "tea", "tier": "medium"}),
        ("memory_save", {"content": "tea", "importance": 6}),
        ("memory_save", {"content": "tea", "tags": "food"}),
        ("memory_save", {"content": "x" * 20_001}),
        ("memory_search", {"query": "tea", "threshold": 1.5}),
        ("memory_update", {"note_id": "note-1"}),
        ("memory_update", {"content": "tea"}),
        ("memory_delete", {}),
    ],
)
def test_the_schema_refuses_wrong_input(name: str, args: dict[str, Any]) -> None:
    tool = find_tool(name)
    assert tool is not None
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(args, tool.input_schema)


async def test_search_looks_for_five_notes_unless_told_otherwise() -> None:
    memory = Recorder()
    assert (await call("memory_search", memory, query="tea"))[0]["note_id"] == "note-1"
    await call(
        "memory_search",
        memory,
        query="tea",
        top_k=20,
        include_conversation=True,
        category="food",
        as_of="2026-05-01",
        threshold=0.45,
    )
    options = [options for _, _, options in memory.asked]
    assert options == [
        {"top_k": 5, "include_conversation": False, "category": None, "as_of": None, "threshold": None},
        {
            "top_k": 20,
            "include_conversation": True,
            "category": "food",
            "as_of": "2026-05-01",
            "threshold": 0.45,
        },
    ]


async def test_save_passes_on_what_is_given_and_leaves_defaults_to_the_memory() -> None:
    memory = Recorder()
    await call("memory_save", memory, content="Likes tea.")
    await call(
        "memory_save",
        memory,
        content="Likes tea.",
        tags=["food"],
        tier="short_term",
        importance=2,
        category="home",
    )
    assert [args for _, args, _ in memory.asked] == [("Likes tea.",)] * 2
    assert [options for _, _, options in memory.asked] == [
        {"tags": None, "tier": None, "importance": None, "category": None},
        {"tags": ["food"], "tier": "short_term", "importance": 2, "category": "home"},
    ]


async def test_update_passes_the_id_and_the_whole_text() -> None:
    memory = Recorder()
    await call("memory_update", memory, note_id="note-1", content="Likes coffee.")
    assert memory.asked == [("update", ("note-1", "Likes coffee."), {})]


async def test_what_the_memory_refuses_reaches_the_model_as_it_is() -> None:
    with pytest.raises(NotFound, match="no such note"):
        await call("memory_delete", Recorder(), note_id="note-1")


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("memory_search", {"query": "tea"}),
        ("memory_save", {"content": "tea"}),
        ("memory_update", {"note_id": "note-1", "content": "tea"}),
        ("memory_delete", {"note_id": "note-1"}),
    ],
)
async def test_without_a_memory_every_tool_says_so(name: str, args: dict[str, Any]) -> None:
    with pytest.raises(ToolFailure, match="No memory is configured"):
        await call(name, None, **args)
