"""The note tools as the model is told of them."""

import json
from typing import Any

import jsonschema
import pytest

from apps.accounts.models import User
from apps.agent.tools.base import Tier, ToolFailure, find_tool, tools_for
from apps.core.ids import uuid7
from tests.tools import Tools

NAMES = ["memory_delete", "memory_save", "memory_search", "memory_update"]


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


@pytest.mark.parametrize("name", NAMES)
def test_every_tool_has_a_valid_schema_and_describes_its_parameters(name: str) -> None:
    tool = find_tool(name)
    assert tool is not None
    jsonschema.Draft202012Validator.check_schema(tool.input_schema)
    assert tool.input_schema["additionalProperties"] is False
    for field, parameter in tool.input_schema["properties"].items():
        assert parameter.get("description"), field
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


@pytest.mark.django_db(transaction=True)
async def test_search_looks_for_five_notes_unless_told_otherwise(alice: User) -> None:
    tools = Tools(user_id=alice.pk)
    for place in ("Assam", "Ceylon", "Darjeeling", "Kenya", "Nepal", "Sikkim", "Yunnan"):
        await tools.call("memory_save", content=f"The user has drunk tea from {place}.")
    assert len(await tools.call("memory_search", query="tea")) == 5
    assert len(await tools.call("memory_search", query="tea", top_k=7)) == 7


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
        await Tools(user_id=uuid7(), use_memory=False).call(name, **args)
