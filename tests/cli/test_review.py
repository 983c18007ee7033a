"""Deciding on notes that wait, one by one and all at once."""

from collections.abc import Iterator

import pytest

from tests.cli.izzy import Izzy, fields_of


@pytest.fixture(autouse=True)
def _nothing_waits(izzy: Izzy) -> Iterator[None]:
    yield
    izzy.run("review", "reject", "--all", "--yes").ok()


def waiting(izzy: Izzy, *texts: str) -> list[str]:
    return [
        izzy.run("save", text, "--status", "pending").ok().text.split()[1].rstrip(".") for text in texts
    ]


def status(izzy: Izzy, note: str) -> str:
    found = [row[3] for row in fields_of(izzy.run("list", "--all")) if row[0] == note]
    return found[0] if found else "deleted"


def test_a_person_decides_one_by_one(izzy: Izzy) -> None:
    first, second, third = waiting(
        izzy, "Plays go", "Owns a canoe", "Keeps wild bees"
    )  # shown newest first
    with izzy.terminal("review") as terminal:
        terminal.expect("Keeps wild bees")
        terminal.line("x")
        terminal.expect("[q]uit: ")
        terminal.line("a")
        terminal.expect("Owns a canoe")
        terminal.line("r")
        terminal.expect("Plays go")
        terminal.line("s")
        assert terminal.end() == 0
    assert [status(izzy, note) for note in (first, second, third)] == ["pending", "deleted", "active"]


def test_a_note_is_accepted_with_another_text(izzy: Izzy) -> None:
    (note,) = waiting(izzy, "Plays go")
    editor = izzy.home / "editor.sh"
    editor.write_text("#!/bin/sh\necho 'Plays go on Sundays' > \"$1\"\n")
    editor.chmod(0o700)
    with izzy.terminal("review", EDITOR=str(editor)) as terminal:
        terminal.expect("Plays go")
        terminal.line("e")
        assert terminal.end() == 0
    assert "Plays go on Sundays" in izzy.run("show", note).ok().text


def test_a_stray_space_decides_nothing(izzy: Izzy) -> None:
    (note,) = waiting(izzy, "Plays go")
    with izzy.terminal("review", EDITOR="true") as terminal:
        terminal.expect("[q]uit: ")
        terminal.line(" ")
        terminal.expect("[q]uit: ")
        terminal.line("q")
        assert terminal.end() == 0
    assert status(izzy, note) == "pending"


def test_without_a_terminal_what_waits_is_listed(izzy: Izzy) -> None:
    notes = waiting(izzy, "Plays go", "Owns a canoe")
    assert {row[0] for row in fields_of(izzy.run("review"))} == set(notes)


def test_all_are_decided_on_at_once_after_a_yes(izzy: Izzy) -> None:
    notes = waiting(izzy, "Plays go", "Owns a canoe")
    assert izzy.run("review", "accept", "--all").code == 2
    with izzy.terminal("review", "accept", "--all") as terminal:
        terminal.line("n")
        terminal.expect("Nothing was decided.")
        assert terminal.end() == 1
    with izzy.terminal("review", "accept", "--all") as terminal:
        terminal.expect("Accept all 2 that wait?")
        terminal.line("y")
        terminal.expect("Accepted 2 of 2.")
        assert terminal.end() == 0
    assert [status(izzy, note) for note in notes] == ["active", "active"]


def test_one_that_cannot_be_decided_on_does_not_hold_up_the_others(izzy: Izzy) -> None:
    (note,) = waiting(izzy, "Plays go")
    unknown = "0196e1a0-0000-7000-8000-000000000000"
    done = izzy.run("review", "accept", unknown, note)
    assert done.code == 1
    assert unknown in done.err
    assert status(izzy, note) == "active"
