"""The file commands in words, and what the offline model makes of them: over the real SDK, loop and files."""

from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.offline.intents import Kind, file_command, intent_of
from apps.agent.tools.base import tools_for
from apps.agent.turn.events import Response, ToolStart
from apps.agent.turn.executor import executor_for
from apps.core.db.pool import in_db
from apps.memory.models import MemoryFile
from tests.agent.turns import Turn

X = "/memories/x.txt"


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        ("view /memories", {"command": "view", "path": "/memories"}),
        ("/memories", {"command": "view", "path": "/memories"}),
        ("show /memories/x.txt", {"command": "view", "path": X}),
        ("what's in /memories/x.txt?", {"command": "view", "path": X}),
        ("list the files in /memories", {"command": "view", "path": "/memories"}),
        ("read /memories/x.txt lines 2-5", {"command": "view", "path": X, "view_range": [2, 5]}),
        (
            "show /memories/x.txt line 3 to the end",
            {"command": "view", "path": X, "view_range": [3, -1]},
        ),
        (
            "create /memories/x.txt with Buy milk.",
            {"command": "create", "path": X, "file_text": "Buy milk."},
        ),
        (
            "create /memories/x.txt with\none\ntwo",
            {"command": "create", "path": X, "file_text": "one\ntwo"},
        ),
        (
            'make a file called /memories/x.txt: "a\\nb"',
            {"command": "create", "path": X, "file_text": "a\nb"},
        ),
        ("create /memories/x.txt", {"command": "create", "path": X, "file_text": ""}),
        ("write hello to /memories/x.txt", {"command": "create", "path": X, "file_text": "hello"}),
        (
            "replace milk with oat milk in /memories/x.txt",
            {"command": "str_replace", "path": X, "old_str": "milk", "new_str": "oat milk"},
        ),
        (
            "in /memories/x.txt, replace 'a' by 'b'.",
            {"command": "str_replace", "path": X, "old_str": "a", "new_str": "b"},
        ),
        (
            "remove milk from /memories/x.txt",
            {"command": "str_replace", "path": X, "old_str": "milk", "new_str": ""},
        ),
        (
            "insert eggs at line 2 of /memories/x.txt",
            {"command": "insert", "path": X, "insert_line": 2, "insert_text": "eggs"},
        ),
        (
            "add eggs at the top of /memories/x.txt",
            {"command": "insert", "path": X, "insert_line": 0, "insert_text": "eggs"},
        ),
        ("delete /memories/x.txt", {"command": "delete", "path": X}),
        ("delete the folder /memories/a", {"command": "delete", "path": "/memories/a"}),
        (
            "rename /memories/x.txt to /memories/y.txt.",
            {"command": "rename", "old_path": X, "new_path": "/memories/y.txt"},
        ),
    ],
)
def test_file_commands_are_understood(words: str, fields: dict[str, Any]) -> None:
    assert file_command(words) == fields
    polite = intent_of(f"Izzy, could you please {words}")
    assert polite.kind == Kind.FILE


@pytest.mark.parametrize(
    "words", ["list my memories", "remember that I wrote /memories down", "what is in my memories?", ""]
)
def test_other_words_are_no_file_commands(words: str) -> None:
    assert file_command(words) is None


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ("replace " + "a with " * 2800 + "in /memories", None),
        ("write " + " " * 19_000 + "/memories", "create"),
        ("create /memories/x " + "with " * 3800, "create"),
        ("view /memories/" + "/" * 1900 + " x", None),
        ("replace " + "a with b in " * 160 + " /memories", "str_replace"),
    ],
)
def test_long_words_do_not_hang_the_patterns(words: str, command: str | None) -> None:
    assert (file_command(words) or {}).get("command") == command


async def ask(user: User, words: str) -> tuple[str, list[str]]:
    turn = Turn(user, tools_for({"files"}))
    turn.executor = await in_db(
        executor_for,
        user_id=user.pk,
        conversation_id=turn.state.conversation_id,
        turn_id=turn.turn_id,
        use_memory=True,
    )
    turn.state.messages = [{"role": "user", "content": [{"type": "text", "text": words}]}]
    await turn.run()
    return turn.of(Response)[-1].text, [start.name for start in turn.of(ToolStart)]


@pytest.mark.django_db(transaction=True)
async def test_a_file_lives_through_all_commands(alice: User) -> None:
    said, used = await ask(alice, "create /memories/todo.txt with Buy milk\\nCall Ann")
    assert (said, used) == ("File created successfully at: /memories/todo.txt", ["memory"])
    assert "1\tBuy milk" in (await ask(alice, "show /memories/todo.txt"))[0]
    assert "oat milk" in (await ask(alice, "replace milk with oat milk in /memories/todo.txt"))[0]
    assert "/memories/todo.txt" in (await ask(alice, "view /memories"))[0]
    await ask(alice, "insert Sleep at line 2 of /memories/todo.txt")
    said, _ = await ask(alice, "rename /memories/todo.txt to /memories/lists/today.txt")
    assert said == "Successfully renamed /memories/todo.txt to /memories/lists/today.txt"
    file = await in_db(lambda: MemoryFile.objects.for_user(alice).get())
    assert (file.path, file.content) == ("/memories/lists/today.txt", "Buy oat milk\nCall Ann\nSleep\n")
    await ask(alice, "delete /memories/lists")
    assert not await in_db(lambda: MemoryFile.objects.for_user(alice).exists())


@pytest.mark.django_db(transaction=True)
async def test_a_refusal_is_passed_on(alice: User) -> None:
    said, _ = await ask(alice, "show /memories/no.txt")
    assert "The path /memories/no.txt does not exist. Please provide a valid path." in said


@pytest.mark.django_db(transaction=True)
async def test_without_the_tool_it_says_so(alice: User) -> None:
    turn = Turn(alice, tools_for({"notes"}))
    turn.state.messages = [{"role": "user", "content": [{"type": "text", "text": "view /memories"}]}]
    await turn.run()
    assert "no tool for that" in turn.of(Response)[-1].text
