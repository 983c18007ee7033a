"""MCP's offer, held against the one registry of tools and against REST."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client
from mcp.types import ToolAnnotations

from apps.accounts.models import User
from apps.agent.tools.base import Tier, find_tool
from apps.capabilities.models import Capability
from apps.gateway.mcp.offering import MAX_DESCRIPTION_BYTES, described, tool_called, tools_offered
from tests.capabilities.making import NAME_SCHEMA, make

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def openapi(alice: User, api: Callable[..., Client]) -> dict[str, Any]:
    schema: dict[str, Any] = api(alice).get("/api/schema/?format=json").json()
    return schema


def test_each_tool_is_described_as_the_registry_has_it(alice: User) -> None:
    make(alice, "greeter")
    offered = tools_offered(alice.pk, may_write=True)
    for tool in offered:
        shown = described(tool)
        registered = find_tool(tool.name)
        assert registered is not None
        if not tool.name.startswith("cap_"):
            assert tool is registered
        assert shown.name == tool.name
        assert shown.input_schema == (tool.shown_schema or tool.input_schema)
        assert shown.title == tool.title != ""
        assert shown.description == tool.description
        assert len((shown.description or "").encode()) <= MAX_DESCRIPTION_BYTES
        assert shown.annotations is not None
        assert shown.annotations.read_only_hint == (tool.tier == Tier.READ_ONLY)
        assert shown.input_schema["type"] == "object"
    assert offered[-1].shown_schema == NAME_SCHEMA


def test_the_hints_say_what_a_call_may_do(alice: User) -> None:
    make(alice, "greeter")
    make(alice, "caller", hosts=["example.com"])
    hints = {
        each.name: each.annotations for each in map(described, tools_offered(alice.pk, may_write=True))
    }

    def flags(name: str) -> tuple[bool | None, ...]:
        hint = hints[name] or ToolAnnotations()
        return hint.read_only_hint, hint.destructive_hint, hint.idempotent_hint, hint.open_world_hint

    assert flags("memory_search") == (True, False, True, False)
    assert flags("memory_save") == (False, False, False, False)
    assert flags("memory_update") == (False, True, True, False)
    assert flags("memory_delete") == (False, True, True, False)
    assert flags("memory") == (False, True, False, False)
    assert flags("cap_greeter") == (True, False, True, False)
    assert flags("cap_caller") == (False, True, False, True)


def test_only_a_deletion_asks_the_client_for_a_person(alice: User) -> None:
    metas = {
        each.name: each.meta or {} for each in map(described, tools_offered(alice.pk, may_write=True))
    }
    asking = [name for name, meta in metas.items() if meta.get("anthropic/requiresUserInteraction")]
    assert asking == ["memory_delete"]
    assert metas["deep_memory"]["anthropic/maxResultSizeChars"] == 40_000


def test_what_the_tools_take_rest_takes_too(alice: User, openapi: dict[str, Any]) -> None:
    bodies = {
        "memory_search": ("/api/v1/search/", "post", {"include_conversation", "category"}),
        "memory_save": ("/api/v1/memories/", "post", set()),
        "memory_update": ("/api/v1/memories/{memory_id}/", "patch", {"note_id"}),
        "memory": ("/api/v1/memory-files/", "post", set()),
    }
    for name, (path, method, elsewhere) in bodies.items():
        body = openapi["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
        reference = body["$ref"].removeprefix("#/components/schemas/")
        fields = openapi["components"]["schemas"][reference]["properties"]
        tool = tool_called(alice.pk, name)
        assert tool is not None
        taken = set(described(tool).input_schema["properties"])
        assert taken - elsewhere <= set(fields), name


def test_beyond_thirty_the_last_used_are_listed_and_all_can_be_called(alice: User) -> None:
    for number in range(32):
        make(alice, f"tool_{number:02}")
    used = Capability.objects.for_user(alice).get(name="tool_31")
    used.last_run_at = used.created_at
    used.save(update_fields=["last_run_at"])
    names = [tool.name for tool in tools_offered(alice.pk, may_write=True)]
    listed = [name for name in names if name.startswith("cap_")]
    assert len(listed) == 30
    assert listed == sorted(listed)
    assert "cap_tool_31" in listed
    assert {"lookup_capability", "execute_capability"} <= set(names)
    assert all(tool_called(alice.pk, f"cap_tool_{number:02}") for number in range(32))


def test_of_a_stranger_nothing_can_be_called(alice: User, bob: User) -> None:
    make(alice, "greeter")
    assert tool_called(alice.pk, "cap_greeter") is not None
    assert tool_called(bob.pk, "cap_greeter") is None
    assert tool_called(alice.pk, "cap_../x") is None
    assert tool_called(alice.pk, "request_capability") is None
