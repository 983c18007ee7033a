"""Output for people: tables that fit, colours only where they are wanted, nothing that steers a terminal."""

import json
import os
import re
import subprocess
from typing import Any

import pytest

from izzy_cli.output import exact
from tests.cli.izzy import Izzy

LONG = (
    "Keeps a diary of every walk along the river with the names of all birds that were seen there " * 3
)


@pytest.fixture
def note(izzy: Izzy) -> str:
    return izzy.run("save", LONG, "-t", "walks").ok().text.split()[1].rstrip(".")


@pytest.mark.parametrize("columns", [80, 50])
def test_a_table_fits_the_terminal_and_shows_whole_ids(izzy: Izzy, note: str, columns: int) -> None:
    with izzy.terminal("list", "-t", "walks", columns=columns) as terminal:
        assert terminal.end() == 0
    lines = terminal.text.splitlines()
    assert max(map(len, lines)) <= columns
    assert any(line.split()[:1] == [note] for line in lines)
    assert "Note" in lines[0]


def test_on_a_narrow_terminal_an_id_goes_on_in_the_next_line(izzy: Izzy, note: str) -> None:
    with izzy.terminal("search", "walks", columns=34) as terminal:
        assert terminal.end() == 0
    assert max(map(len, terminal.text.splitlines())) <= 34
    assert note in "".join(re.findall(r"^\s+([0-9a-f-]+)", terminal.text, re.MULTILINE))


@pytest.mark.parametrize("wish", ["NO_COLOR", "TERM"])
def test_a_terminal_that_wants_no_colours_gets_none(izzy: Izzy, note: str, wish: str) -> None:
    with izzy.terminal("show", note) as terminal:
        assert terminal.end() == 0
    assert "\x1b[2m" in terminal.written
    wanted: Any = {wish: "dumb"}
    with izzy.terminal("show", note, **wanted) as terminal:
        assert terminal.end() == 0
    assert re.findall(r"\x1b\[\d+m", terminal.written) == []


def test_a_pipe_gets_a_line_a_row_with_whole_texts_and_no_colours(izzy: Izzy, note: str) -> None:
    line = izzy.process("list", "-t", "walks", "-n", "1").ok().text
    assert line.split("\t")[0] == note
    assert line.count("\n") == 1
    assert "\x1b" not in line
    words = ("a word of it " * 60).strip()
    izzy.run("save", words, "-t", "long").ok()
    for command in (["list", "-t", "long"], ["search", "a word of it", "-t", "long"]):
        assert words in izzy.run(*command).ok().text


def test_markdown_is_shown_without_its_signs(izzy: Izzy) -> None:
    text = "# Oats\n\n- **rolled**, 80 g"
    note = izzy.run("save", text, "-t", "oats").ok().text.split()[1].rstrip(".")
    for command in (["list", "-t", "oats"], ["search", "oats", "-t", "oats"]):
        assert "Oats • rolled, 80 g" in izzy.run(*command).ok().text
    assert text in izzy.run("show", note).ok().text


def test_what_others_wrote_cannot_steer_the_terminal(izzy: Izzy) -> None:
    note = (
        izzy.run("save", given="Sly \x1b]0;title\x07 \x9b31m\u202e note")
        .ok()
        .text.split()[1]
        .rstrip(".")
    )
    for arguments in (["show", note], ["list", "Sly"], ["search", "Sly"]):
        assert not set("\x1b\x07\x9b\u202e") & set(izzy.run(*arguments).ok().text)
    with izzy.terminal("list", "Sly") as terminal:
        assert terminal.end() == 0
    assert not set("\x07\x9b\u202e") & set(terminal.text)
    assert "\x1b]" not in terminal.text


@pytest.mark.parametrize("arguments", [["list"], ["list", "--json"], ["search", "walk"], ["--help"]])
def test_a_reader_that_goes_away_is_no_disaster(izzy: Izzy, note: str, arguments: list[str]) -> None:
    there, here = os.pipe()
    os.close(there)
    command = [izzy.command, "-m", "izzy_cli", *arguments]
    done = subprocess.run(
        command, stdout=here, stderr=subprocess.PIPE, env=izzy.variables(), check=False
    )
    os.close(here)
    assert done.stderr == b""
    assert done.returncode == 1


@pytest.mark.parametrize(
    "locale", [{"LC_ALL": "C"}, {"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0"}]
)
def test_a_terminal_without_the_letters_gets_what_it_can_show(
    izzy: Izzy, locale: dict[str, str]
) -> None:
    note = izzy.run("save", given="Zoë likes ☕").ok().text.split()[1].rstrip(".")
    assert b"likes" in izzy.process("show", note, **locale).ok().out
    assert "Zoë likes ☕".encode() in izzy.process("show", note, "--json", **locale).ok().out


def test_a_search_imports_no_more_than_it_needs(izzy: Izzy, note: str) -> None:
    program = (
        "import sys\nfrom izzy_cli.main import run\ncode = run(['search', 'walk'])\n"
        "print(code, sorted({name.partition('.')[0] for name in sys.modules} & {'rich', 'pygments'}))"
    )
    command = [izzy.command, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=izzy.variables(), check=False)
    assert done.stdout.splitlines()[-1] == "0 []", done.stderr


def test_what_does_not_show_in_what_one_says_yes_to_is_escaped() -> None:
    given = {"city": "Z\u00fcrich\U000e0041\u202e\ufe01"}
    assert exact(given) == '{\n  "city": "Z\u00fcrich\\udb40\\udc41\\u202e\\ufe01"\n}'
    assert json.loads(exact(given)) == given
