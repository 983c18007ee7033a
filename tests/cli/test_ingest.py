"""Conversations from files and pipes."""

import json

from tests.chat.server import Server
from tests.cli.izzy import Izzy

TALK = "user: I moved to Oslo\nassistant: How is it?\nuser: Cold\n"


def test_the_same_again_adds_nothing_and_more_adds_what_is_new(izzy: Izzy) -> None:
    file = izzy.home / "oslo.txt"
    file.write_text(TALK)
    assert "3 messages added, 0 had" in izzy.run("ingest", str(file)).ok().text
    assert "0 messages added, 3 had" in izzy.run("ingest", str(file)).ok().text
    file.write_text(TALK + "assistant: Wear wool\n")
    assert "1 messages added, 3 had" in izzy.run("ingest", str(file)).ok().text
    row = izzy.run("conversations", "--channel", "cli", "Wear", "wool").ok().text.split("\t")
    assert row[1:4] == ["oslo", "cli", "4"]


def test_a_pipe_needs_the_name_of_its_session(izzy: Izzy) -> None:
    done = izzy.run("ingest", given=TALK)
    assert done.code == 2
    assert "--session" in done.err
    assert izzy.run("ingest", "-s", "piped", "-c", "notebook", given=TALK).ok()


def test_nothing_is_sent_where_a_line_is_broken(izzy: Izzy) -> None:
    lines = [json.dumps({"role": "user", "content": "fine", "session": "broken"}), "{"]
    done = izzy.run("ingest", given="\n".join(lines))
    assert done.code == 1
    assert "standard input:2 is not valid JSON" in done.err
    assert "broken" not in izzy.run("conversations", "--channel", "cli").ok().text


def test_what_the_server_refuses_is_named_by_its_place_in_the_file(izzy: Izzy) -> None:
    file = izzy.home / "wizards.jsonl"
    roles = ["user", "assistant", "wizard"]
    file.write_text("\n".join(json.dumps({"role": role, "content": "hm"}) for role in roles))
    done = izzy.run("ingest", str(file))
    assert done.code == 1
    assert f"{file}:3: " in done.err


def test_a_run_that_breaks_off_is_repeated(izzy: Izzy, server: Server) -> None:
    messages = [{"role": "user", "content": f"number {number}"} for number in range(400)]
    messages[300]["role"] = "wizard"
    file = izzy.home / "long.json"
    file.write_text(json.dumps(messages))
    done = izzy.run("ingest", str(file))
    assert done.code == 1
    assert "250 of 400 messages are taken; the same command goes on" in done.err
    messages[300]["role"] = "user"
    file.write_text(json.dumps(messages))
    assert "150 messages added, 250 had come before" in izzy.run("ingest", str(file)).ok().text


def test_a_terminal_shows_how_far_it_is(izzy: Izzy) -> None:
    file = izzy.home / "bar.txt"
    file.write_text(TALK)
    with izzy.terminal("ingest", str(file)) as terminal:
        terminal.expect("Taking in")
        terminal.expect("3 messages added")
        assert terminal.end() == 0
