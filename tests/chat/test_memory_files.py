"""Memory files in chat, over the real SDK and a Messages server: a conversation that keeps a project file, with a wrong
file name on the way; the tool as each endpoint wants it; the prompt that speaks of files only where they are."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.accounts.selectors import preferences_for
from apps.accounts.services import preferences_update
from apps.agent.model import client as model_client
from apps.agent.models import ToolCall
from apps.chat.prompt import system_blocks
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from apps.memory.files.services import file_write
from apps.memory.models import MemoryFile
from tests.chat.client import Program, program_of
from tests.chat.rows import conversation
from tests.peers.anthropic_server import AnthropicServer, reply, tool

PREFERENCES = "/memories/user_preferences.txt"
PROJECT = "/memories/project_solo_entrepreneur_app.txt"
WRONG = "/memories/solo_entrepreneur_app_project.md"
HEADER = "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:"
BEFORE = "User Preferences\n================\n\nFavorite color: blue\n\nCurrent Projects:\n- A novel"
PLAN = "Solo Entrepreneur Management Web App\nStarted: 2025-11-07\n\nTo-Do List:\n[ ] Define core features\n"


def call(command: str, **fields: Any) -> dict[str, Any]:
    return tool("memory", {"command": command, **fields})


def results(sent: dict[str, Any]) -> list[tuple[str, bool]]:
    """The tool results that end a request, with whether they are errors."""
    blocks = sent["messages"][-1]["content"]
    return [
        (_text(block["content"]), bool(block.get("is_error")))
        for block in blocks
        if block["type"] == "tool_result"
    ]


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


async def stored(user: User) -> dict[str, str]:
    return await in_db(lambda: dict(MemoryFile.objects.for_user(user).values_list("path", "content")))


class Talk:
    """One conversation; each turn answers with the tool results that the model was given in it, round by round."""

    def __init__(self, program: Program, model: AnthropicServer, place: str) -> None:
        self.program, self.model, self.place = program, model, place

    async def say(self, words: str, *replies: Any) -> list[tuple[str, bool]]:
        before = len(self.model.messages)
        self.model.add(*replies)
        body = {"message": words, "conversation": self.place, "stream": False}
        answer = (await self.program.post("chat/", body)).json()
        await scheduler().idle()
        assert answer["state"] == "done", answer
        return [each for sent in self.model.messages[before + 1 :] for each in results(sent)]


async def begin(user: User, model: AnthropicServer) -> Talk:
    return Talk(await program_of(user), model, await conversation(user))


async def test_the_reference_conversation_is_replayed(alice: User, model: AnthropicServer) -> None:
    talk = await begin(alice, model)
    await in_db(file_write, user_id=alice.pk, path=PREFERENCES, text=BEFORE)
    listed = [f"{len(BEFORE)}B\t/memories", f"{len(BEFORE)}B\t{PREFERENCES}"]

    seen = await talk.say("hello", reply(call("view", path="/memories")), reply("Hello!"))
    assert seen == [("\n".join([HEADER, *listed]), False)]

    seen = await talk.say(
        "hello",
        reply(call("view", path="/memories")),
        reply(call("view", path=PREFERENCES)),
        reply("Hello! It's great to hear from you again."),
    )
    assert seen[1][0].startswith(
        f"Here's the content of {PREFERENCES} with line numbers:\n     1\tUser Prefer"
    )

    edited = (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     5\t\n     6\tCurrent Projects:\n     7\t- A novel\n"
        "     8\t- Solo Entrepreneur Management Web App"
    )
    seen = await talk.say(
        "I'd like to start a new dedicated project, and want to keep track of the todos for it.",
        reply(call("view", path="/memories")),
        reply(call("view", path=PREFERENCES)),
        reply(
            call("create", path=PROJECT, file_text=PLAN),
            call(
                "str_replace",
                path=PREFERENCES,
                old_string="- A novel",
                new_string="- A novel\n- Solo Entrepreneur Management Web App",
            ),
        ),
        reply("Excellent! I've created a dedicated project file."),
    )
    assert seen[2:] == [(f"File created successfully at: {PROJECT}", False), (edited, False)]

    features = "MVP Features\n1. Time Tracking\n2. Client Rolodex\n3. Dashboard"
    todo = "To-Do List:\n[ ] Define core features"
    seen = await talk.say(
        "Let's catalog the features for the MVP, TimeTracking (with a client rolodex), dashboard",
        reply(call("str_replace", path=WRONG, old_string=todo, new_string=features)),
        reply(call("view", path="/memories")),
        reply(call("view", path=PROJECT)),
        reply(call("str_replace", path=PROJECT, old_string=todo, new_string=features)),
        reply("Perfect! I've updated the project file with your MVP features."),
    )
    assert seen[0] == (f"Error: The path {WRONG} does not exist. Please provide a valid path.", True)
    assert f"\t{PROJECT}\n" in seen[1][0]
    assert [error for _, error in seen] == [True, False, False, False]
    assert await stored(alice) == {
        PREFERENCES: f"{BEFORE}\n- Solo Entrepreneur Management Web App",
        PROJECT: PLAN.replace(todo, features),
    }

    rows = await in_db(lambda: list(ToolCall.objects.for_user(alice).order_by("created_at", "position")))
    assert [row.input["command"] for row in rows] == [
        *["view"] * 5,
        *["create", "str_replace"],
        *["str_replace", "view", "view", "str_replace"],
    ]
    assert [row.error_code for row in rows if row.error_code] == ["not_found"]


async def test_a_long_file_is_cut_with_a_word_on_how_to_go_on(
    alice: User, model: AnthropicServer
) -> None:
    await in_db(file_write, user_id=alice.pk, path=PROJECT, text="0123456789\n" * 5_000)
    talk = await begin(alice, model)
    seen = await talk.say("hi", reply(call("view", path=PROJECT)), reply("ok"))
    assert len(seen[0][0]) < 16_200
    assert "more characters were left out" in seen[0][0]
    seen = await talk.say("on", reply(call("view", path=PROJECT, view_range=[4_999, -1])), reply("ok"))
    assert seen[0][0].endswith("  4999\t0123456789\n  5000\t0123456789\n  5001\t")


@pytest.mark.parametrize(
    "fields", [{}, {"command": 5}, {"command": "view", "path": ["/memories"]}, {"command": "explode"}]
)
async def test_a_call_that_is_none_is_an_error_the_model_can_act_on(
    alice: User, model: AnthropicServer, fields: dict[str, Any]
) -> None:
    talk = await begin(alice, model)
    seen = await talk.say("hi", reply(tool("memory", fields)), reply("ok"))
    assert [error for _, error in seen] == [True]
    assert "command" in seen[0][0] or "path" in seen[0][0]


def the_tool(sent: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in sent["tools"] if each["name"] == "memory"]


async def test_a_plain_server_gets_our_own_schema_and_the_protocol(
    alice: User, model: AnthropicServer
) -> None:
    await (await begin(alice, model)).say("hi", reply("ok"))
    sent = model.messages[0]
    [definition] = the_tool(sent)
    assert set(definition) == {"name", "description", "input_schema"}
    commands = definition["input_schema"]["properties"]["command"]["enum"]
    assert commands == ["view", "create", "str_replace", "insert", "delete", "rename"]
    assert "View the directory /memories first" in sent["system"][0]["text"]


async def test_anthropics_own_endpoint_gets_the_typed_tool(
    alice: User, model: AnthropicServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_client, "ANTHROPIC_URL", model.url)
    talk = await begin(alice, model)
    await in_db(file_write, user_id=alice.pk, path=PROJECT, text=PLAN)
    seen = await talk.say("hi", reply(call("view", path="/memories")), reply("ok"))
    for sent in model.messages[:2]:
        assert the_tool(sent) == [{"type": "memory_20250818", "name": "memory"}]
    assert f"\t{PROJECT}" in seen[0][0]


async def test_without_the_toolset_neither_tool_nor_prompt_speak_of_files(
    alice: User, model: AnthropicServer
) -> None:
    await in_db(lambda: preferences_update(user_id=alice.pk, toolsets=["notes"]))
    await (await begin(alice, model)).say("hi", reply("ok"))
    sent = model.messages[0]
    assert the_tool(sent) == []
    assert "/memories" not in sent["system"][0]["text"]


async def test_in_a_conversation_without_memory_no_file_is_reached(
    alice: User, model: AnthropicServer
) -> None:
    await in_db(file_write, user_id=alice.pk, path=PROJECT, text=PLAN)
    talk = await begin(alice, model)
    talk.place = await conversation(alice, use_memory=False)
    seen = await talk.say("hi", reply(call("view", path=PROJECT)), reply("ok"))
    assert the_tool(model.messages[0]) == []
    assert seen[0][1]
    assert "Started" not in seen[0][0]


def test_the_prompt_is_the_same_from_turn_to_turn(alice: User) -> None:
    preferences = preferences_for(alice.pk)
    assert system_blocks(preferences, use_memory=True) == system_blocks(preferences, use_memory=True)
    assert "/memories" in system_blocks(preferences, use_memory=True)[0]["text"]
    assert "/memories" not in system_blocks(preferences, use_memory=False)[0]["text"]


def test_the_page_of_tools_offers_it(alice: User, sign_in: Callable[[User], Client]) -> None:
    assert "Memory files" in sign_in(alice).get("/settings/").content.decode()
