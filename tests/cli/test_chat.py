"""Talking with Izzy from the command line: streamed, asked, stopped, gone on with."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.izzy import Izzy
from tests.peers.anthropic_server import AnthropicServer, failure, reply, tool
from tests.site.test_described import problems
from tests.waiting import PATIENCE, eventually

ASKS = reply(tool("ask_user", {"question": "Which colour?"}))
TURN = {"$ref": "#/components/schemas/TurnOutput"}


@pytest.fixture(autouse=True)
def _fresh_script(model: AnthropicServer) -> Iterator[None]:
    model.script.clear()
    yield
    model.script.clear()


def newest(izzy: Izzy) -> str:
    return izzy.run("conversations", "-n", "1").ok().text.split("\t")[0]


def test_the_answer_is_all_that_stands_on_standard_output(izzy: Izzy, model: AnthropicServer) -> None:
    model.add(reply(tool("memory_search", {"query": "tea"})), reply("Nothing about tea."))
    done = izzy.run("chat", "What about tea?").ok()
    assert done.text == "Nothing about tea.\n"
    assert '→ memory_search {"query": "tea"' in done.err
    assert "✓ memory_search" in done.err


def test_an_answer_may_hold_what_ends_a_line_elsewhere(izzy: Izzy, model: AnthropicServer) -> None:
    model.add(*[reply("One\u2028two\u2029three\x85four.")] * 2)
    done = izzy.run("chat", "Hello", "--json").ok()
    assert json.loads(done.text.split("\n")[-2])["text"] == "One\u2028two\u2029three\x85four."
    assert "four." in izzy.run("chat", "Hello again").ok().text


def test_a_message_can_be_piped_in_quietly(izzy: Izzy, model: AnthropicServer) -> None:
    model.add(reply(tool("memory_search", {"query": "tea"})), reply("Nothing."))
    done = izzy.run("chat", "--quiet", given="What about\ntea?").ok()
    assert (done.text, done.err) == ("Nothing.\n", "")


def test_a_conversation_is_gone_on_with(izzy: Izzy, model: AnthropicServer) -> None:
    izzy.run("chat", "My boat is called Ida").ok()
    place = newest(izzy)
    izzy.run("chat", "-c", place, "And its colour is red").ok()
    izzy.run("chat", "--last", "It is old").ok()
    texts = json.dumps(model.messages[-1]["messages"]) + json.dumps(model.messages[-2]["messages"])
    assert "My boat is called Ida" in texts
    assert izzy.run("conversations", "-n", "1").ok().text.split("\t")[3] == "6"


def test_a_question_is_answered_on_a_terminal(izzy: Izzy, model: AnthropicServer) -> None:
    model.add(ASKS, reply("The red one."))
    with izzy.terminal("chat", "Choose a boat") as terminal:
        terminal.expect("Which colour?")
        terminal.expect("Your answer")
        terminal.line("red")
        terminal.expect("The red one.")
        assert terminal.end() == 0


def test_without_a_terminal_a_question_ends_the_command_and_is_answered_by_another(
    izzy: Izzy, model: AnthropicServer
) -> None:
    model.add(ASKS, reply("The blue one."))
    done = izzy.run("chat", "Choose a boat")
    assert done.code == 6
    assert "Which colour?" in done.err
    place = newest(izzy)
    assert f"izzy chat -c {place} --answer TEXT" in done.err
    assert izzy.run("chat", "-c", place, "--answer", "blue").ok().text == "The blue one.\n"


@pytest.mark.parametrize(("key", "is_left"), [("n", True), ("y", False)])
def test_a_call_that_needs_a_yes_is_decided_on(
    izzy: Izzy, model: AnthropicServer, key: str, is_left: bool
) -> None:
    izzy.run("chat", "Delete me later").ok()
    other = newest(izzy)
    model.add(reply(tool("conversation_delete", {"conversation_id": other})), reply("As you say."))
    with izzy.terminal("chat", "Delete that conversation") as terminal:
        terminal.expect("conversation_delete")
        terminal.expect(other)
        terminal.expect("[y]es, [n]o")
        terminal.line("what?")
        terminal.expect("[y]es, [n]o")
        terminal.line(key)
        terminal.expect("As you say.")
        assert terminal.end() == 0
    done = izzy.run("chat", "-c", other, "Still there?")
    assert (done.code == 0) == is_left
    assert done.code in {0, 4}


def test_a_decision_can_be_given_without_a_terminal(izzy: Izzy, model: AnthropicServer) -> None:
    izzy.run("chat", "Keep me").ok()
    other = newest(izzy)
    model.add(reply(tool("conversation_delete", {"conversation_id": other})), reply("Kept."))
    done = izzy.run("chat", "--json", "Delete that conversation")
    assert done.code == 6
    asked = json.loads(done.text)
    assert problems(TURN, asked) == []
    answer = izzy.run("chat", "-c", asked["conversation"], "--approve", "decline", "--json").ok()
    assert json.loads(answer.text)["text"] == "Kept."


def test_control_c_stops_the_turn(izzy: Izzy, model: AnthropicServer) -> None:
    held = reply("one two three four five six", hold_after=4)
    model.add(held)
    with izzy.terminal("chat", "Count") as terminal:
        terminal.expect("one")
        terminal.interrupt()
        terminal.expect("Stopped.")
        assert terminal.end() == 130
    held.release.set()
    # It has been asked to stop, which it does at its next step.
    eventually(lambda: [turn["state"] for turn in log(izzy)] == ["stopped"], lambda: log(izzy))


def log(izzy: Izzy) -> list[dict[str, Any]]:
    """The turns of the newest conversation."""
    import httpx

    address = f"{izzy.url}/api/v1/conversations/{newest(izzy)}/log/"
    answer = httpx.get(address, headers={"Authorization": f"Bearer {izzy.token}"}, timeout=PATIENCE)
    turns: list[dict[str, Any]] = answer.raise_for_status().json()["turns"]
    return turns


def test_line_by_line_the_conversation_goes_on_until_control_d(izzy: Izzy) -> None:
    with izzy.terminal("chat") as terminal:
        terminal.expect("you> ")
        terminal.line("First thing")
        terminal.expect("You said: First thing")
        terminal.expect("you> ")
        terminal.line("Second thing")
        terminal.expect("You said: Second thing")
        terminal.expect("you> ")
        terminal.type("half a line")
        terminal.expect("half a line")
        terminal.interrupt_at_prompt()
        terminal.expect("you> ")
        terminal.type("\x04")
        assert terminal.end() == 0
    assert len(log(izzy)) == 2


def test_what_fails_is_said_and_the_next_message_goes_on(izzy: Izzy, model: AnthropicServer) -> None:
    model.add(failure(400, "invalid_request_error"))
    with izzy.terminal("chat") as terminal:
        terminal.expect("you> ")
        terminal.line("Fail")
        terminal.expect("made to fail")
        terminal.expect("you> ")
        terminal.line("Again")
        terminal.expect("You said: Again")
        terminal.line("/quit")
        assert terminal.end() == 0


def test_a_turn_that_fails_ends_with_its_reason(izzy: Izzy, model: AnthropicServer) -> None:
    model.add(failure(400, "invalid_request_error"))
    done = izzy.run("chat", "Fail")
    assert done.code == 1
    assert "made to fail" in done.err


def test_what_would_steer_the_terminal_is_not_passed_on(izzy: Izzy, model: AnthropicServer) -> None:
    model.add(reply("red \x1b[31m alert \x07"))
    assert izzy.run("chat", "Hm").ok().text == "red \ufffd[31m alert \ufffd\n"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--last", "--no-memory"], "--no-memory is for a new conversation."),
        (["-c", "a-conversation", "--no-memory"], "--no-memory is for a new conversation."),
        (["--call", "a-call"], "--call goes with --answer or --approve."),
    ],
)
def test_what_an_option_cannot_do_is_said_before_anything_is_sent(
    izzy: Izzy, model: AnthropicServer, options: list[str], message: str
) -> None:
    done = izzy.run("chat", *options, "Never to be sent")
    assert done.code == 2
    assert message in done.err
    assert "Never to be sent" not in str(model.messages)  # a turn of before may still ask
