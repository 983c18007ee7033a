"""How people are told of tools: each tool says so itself, and everything that shows tools takes it from there."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Annotated, Any, Literal

import pytest
from django.conf import settings
from django.test import Client

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.agent.status import tool_choices
from apps.agent.tools.base import (
    Tier,
    Tool,
    ToolContext,
    all_tools,
    find_tool,
    input_schema,
    tool,
    tool_title,
)
from apps.chat.audit_log.words import target, title


@pytest.mark.parametrize("tool", all_tools(), ids=lambda tool: tool.name)
def test_every_tool_says_how_people_are_told_of_it(tool: Tool) -> None:
    assert tool.title, f"give {tool.name} a title, such as “Search the web”"
    assert tool.doing, f"say what a call of {tool.name} is doing, such as “Searching the web”"
    assert tool.done, f"say what a call of {tool.name} has done, such as “Searched the web”"
    fields = (tool.shown_schema or tool.input_schema)["properties"]
    assert set(tool.shows) <= set(fields), "`shows` names fields of the input"
    icons = (settings.BASE_DIR / "templates/components/icons.svg").read_text()
    assert f'id="i-{tool.icon}"' in icons, f"{tool.icon} is no icon"
    for words in tool.variants.values():
        assert all(words)


def test_every_tool_that_is_written_is_found() -> None:
    root = settings.BASE_DIR
    files = [*root.glob("apps/**/tools.py"), *root.glob("apps/**/tools/**/*.py")]
    assert len(files) > 10
    # A build's own tools stand in `workspace` and are offered to the builder alone.
    for module in {".".join(file.relative_to(root).with_suffix("").parts) for file in files}:
        written = {
            value.name for value in vars(import_module(module)).values() if isinstance(value, Tool)
        }
        assert "workspace" in module or written <= {tool.name for tool in all_tools()}, (
            f"{module} is not found: name it by register_tools in its app's apps.py"
        )


def test_every_tool_has_a_description_for_the_model() -> None:
    assert [tool.name for tool in all_tools() if len(tool.description) < 40] == []


def test_titles_tell_tools_apart() -> None:
    titles = [label for _, label in tool_choices()]
    assert sorted(set(titles)) == sorted(titles)


def test_a_tool_that_is_gone_has_its_name() -> None:
    assert tool_title("make_tea") == "Make tea"
    assert tool_title("cap_dice_roller") == "Run dice roller"
    assert tool_title("memory", "create") == "Create"


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("memory_search", {"query": "tea"}, ("Search your memories", "tea")),
        (
            "recall_memory",
            {"keywords": ["tea", "cup"]},
            ("Recall your memories by keywords", "tea, cup"),
        ),
        (
            "execute_capability",
            {"name": "dice", "input": {"n": 1}},
            ("Run one of your capabilities", "dice"),
        ),
        ("conversation_read", {"conversation_id": "x"}, ("Read a conversation", "")),
        ("memory", {"command": "edit", "path": "/memories/a.md"}, ("Update", "a.md")),
        ("make_tea", {"text": "green"}, ("Make tea", "green")),
        ("make_tea", {"text": 6}, ("Make tea", "6")),
        ("make_tea", {"text": True}, ("Make tea", "")),
    ],
)
def test_the_log_of_a_conversation_takes_it_from_the_tool(
    name: str, given: dict[str, Any], words: tuple[str, str]
) -> None:
    call = ToolCall(name=name, input=given)
    assert (title(call), target(call)) == words


@pytest.mark.django_db
def test_the_chat_page_gets_it_as_json(alice: User, sign_in: Callable[[User], Client]) -> None:
    page = sign_in(alice).get("/").content.decode()
    found = re.search(r'<script id="tool-words" type="application/json">(.*?)</script>', page)
    assert found
    words = json.loads(found[1])
    assert sorted(words) == [tool.name for tool in all_tools()]
    search = find_tool("web_search")
    assert search is not None
    assert (words["web_search"]["done"], words["web_search"]["shows"]) == (search.done, ["query"])


@dataclass(frozen=True, slots=True)
class Toy:
    name: Annotated[str, {"maxLength": 9}, "Its name."]
    size: Annotated[int, {"minimum": 1}] = 1
    kinds: Annotated[list[Annotated[str, {"minLength": 1}]] | None, "Some."] = None
    colour: Literal["red", "blue"] | None = None


def test_a_schema_comes_from_the_argument_class() -> None:
    assert input_schema(Toy) == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "maxLength": 9, "description": "Its name."},
            "size": {"type": "integer", "minimum": 1},
            "kinds": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "description": "Some.",
            },
            "colour": {"enum": ["red", "blue"]},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_a_model_is_not_sent_what_calls_are_only_checked_for() -> None:
    @dataclass(frozen=True, slots=True)
    class Brief:
        name: Annotated[str, {"minLength": 1, "maxLength": 9}, "Its name."] = ""

    @tool(tier=Tier.READ_ONLY)
    def shorter(context: ToolContext, arguments: Brief) -> str:
        """Be brief."""
        return arguments.name

    name = {"type": "string", "maxLength": 9, "description": "Its name."}
    assert shorter.definition()["input_schema"] == {"type": "object", "properties": {"name": name}}
    assert shorter.input_schema["properties"]["name"]["minLength"] == 1
    assert shorter.input_schema["additionalProperties"] is False
    of_others = {"type": "object", "properties": {"any": True}, "additionalProperties": True}
    assert replace(shorter, shown_schema=of_others).definition()["input_schema"] == of_others


async def test_a_function_becomes_a_tool_plain_or_waiting() -> None:
    @tool(tier=Tier.READ_ONLY, title="Name a toy")
    def plain(context: ToolContext, arguments: Toy) -> str:
        """Name a toy,
        in one line."""
        return f"{arguments.name} {arguments.size}"

    @tool(tier=Tier.READ_ONLY, input_schema={"type": "object"})
    async def waiting(context: ToolContext, arguments: dict[str, Any]) -> dict[str, Any]:
        """Give back the input."""
        return arguments

    context: Any = None
    assert (plain.name, plain.description) == ("plain", "Name a toy, in one line.")
    assert await plain.run(context, {"name": "Ada"}) == "Ada 1"
    assert await waiting.run(context, {"x": 1}) == {"x": 1}
