"""Notes on the command line: saved, found, changed, forgotten, brought back."""

import json
from pathlib import Path

import pytest

from tests.cli.izzy import Izzy, fields_of, only


def saved(izzy: Izzy, text: str, *more: str) -> str:
    return izzy.run("save", text, *more).ok().text.split()[1].rstrip(".")


def editor(izzy: Izzy, script: str) -> dict[str, str]:
    """An editor that does what a line of Python says with `text`."""
    file = izzy.home / "editor.py"
    file.write_text(
        "import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\ntext = file.read_text()\n"
        f"{script}\nfile.write_text(text)\n"
    )
    return {"EDITOR": f"python3 {file}", "TMPDIR": str(izzy.home)}


def left_behind(izzy: Izzy) -> list[Path]:
    return list(izzy.home.glob("izzy-*.md"))


def test_a_note_is_saved_from_words_and_from_a_pipe(izzy: Izzy) -> None:
    saved(izzy, "Grows quinces", "--tag", "garden")
    izzy.run("save", "-t", "garden", given="Grows medlars\nin the yard\n").ok()
    rows = fields_of(izzy.run("list", "--tag", "garden"))
    assert [row[1] for row in rows] == ["Grows medlars in the yard", "Grows quinces"]


@pytest.mark.parametrize("arguments", [["save"], ["search"], ["context"]])
def test_nothing_in_the_pipe_is_no_text(izzy: Izzy, arguments: list[str]) -> None:
    done = izzy.run(*arguments, given="  \n")
    assert done.code == 2
    assert "Nothing was piped in" in done.err


def test_what_is_no_text_is_refused_with_its_line(izzy: Izzy) -> None:
    done = izzy.run("save", given=b"fine\n\xff\xfa\n")
    assert done.code == 1
    assert "not text in UTF-8 (line 2)" in done.err


def test_a_note_is_found_and_shown(izzy: Izzy) -> None:
    note = saved(izzy, "Rehearses the bassoon on Thursdays", "-k", "fact")
    assert fields_of(izzy.run("search", "bassoon", "-n", "1"))[0][0] == note
    shown = izzy.run("show", note).ok().text
    assert shown.startswith("Rehearses the bassoon on Thursdays\n")
    assert "fact, importance" in shown
    assert "bassoon" in izzy.run("context", "When is bassoon rehearsal?").ok().text


def test_pages_and_filters_reach_every_note(izzy: Izzy) -> None:
    ids = {saved(izzy, f"Stamp number {number}", "-t", "stamps") for number in range(3)}
    pages = [fields_of(izzy.run("list", "-t", "stamps", "-n", "2", "-p", page)) for page in ("1", "2")]
    assert {row[0] for page in pages for row in page} == ids
    assert len(fields_of(izzy.run("list", "--all", "Stamp", "number"))) == 3
    assert "no such notes" in izzy.run("list", "-t", "stamps", "--kind", "decision").ok().err


def test_an_unknown_note_is_not_found(izzy: Izzy) -> None:
    for arguments in (["show", "no-such/../id"], ["forget", "x", "--yes"], ["restore", "x"]):
        assert izzy.run(*arguments).code == 4


def test_fields_are_changed_by_options(izzy: Izzy) -> None:
    note = saved(izzy, "Keeps bees")
    izzy.run("edit", note, "--kind", "project", "-t", "bees", "-t", "garden").ok()
    izzy.run("edit", note, "--text", "-", given="Keeps wild bees").ok()
    shown = izzy.run("show", note).ok().text
    assert "Keeps wild bees" in shown
    assert "bees, garden" in shown


def test_the_editor_changes_text_and_fields(izzy: Izzy) -> None:
    note = saved(izzy, "Drinks tea", "-t", "old")
    change = "text = text.replace('Drinks tea', 'Drinks mate').replace('tags: old', 'tags: new, hot')"
    izzy.run("edit", note, **editor(izzy, change)).ok()
    shown = izzy.run("show", note).ok().text
    assert "Drinks mate" in shown
    assert "new, hot" in shown
    assert left_behind(izzy) == []


def test_an_entry_of_a_list_with_a_sign_in_it_stays_one_in_the_editor(izzy: Izzy) -> None:
    fields = ("-t", "salt, pepper", "-t", 'the "best"', "--occasion", "cooking; for guests")
    note = saved(izzy, "Keeps spices in the drawer", *fields)
    change = "text = text.replace('tags: ', 'tags: kitchen, ').replace('occasions: ', 'occasions: shopping; ')"
    izzy.run("edit", note, **editor(izzy, change)).ok()
    now = json.loads(izzy.run("show", note, "--json").ok().out)
    assert now["tags"] == ["kitchen", "salt, pepper", 'the "best"']
    assert now["occasions"] == ["shopping", "cooking; for guests"]


def test_an_editor_that_changes_nothing_changes_nothing(izzy: Izzy) -> None:
    note = saved(izzy, "Drinks tea")
    assert "Nothing was changed" in izzy.run("edit", note, **editor(izzy, "pass")).ok().err
    assert len(fields_of(izzy.run("show", note, "--history"))) == 1


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("text = text.replace('kind: general', 'kind: poem') + 'More.'", "kind"),
        ("text = 'no fields'", "must stay"),
        ("text = text.replace('kind: general', 'mood: calm')", "no field 'mood'"),
        ("text += 'More.'; file.write_text(text); sys.exit(3)", "ended with 3"),
    ],
)
def test_what_was_written_is_kept_where_it_cannot_be_taken(
    izzy: Izzy, change: str, problem: str
) -> None:
    note = saved(izzy, "Drinks tea")
    done = izzy.run("edit", note, **editor(izzy, change))
    assert done.code == 1
    assert problem in done.err
    kept = only(left_behind(izzy))
    assert str(kept) in done.err
    assert kept.read_text() not in {"", "Drinks tea"}
    assert izzy.run("show", note).ok().text.startswith("Drinks tea\n")


def test_what_another_changed_meanwhile_is_not_written_over(izzy: Izzy) -> None:
    note = saved(izzy, "Drinks tea")
    other = f"import subprocess; subprocess.run([{izzy.command!r}, '-m', 'izzy_cli', 'edit', '{note}', '--text', 'Cocoa'])"
    done = izzy.run("edit", note, **editor(izzy, f"{other}; text = text.replace('tea', 'milk')"))
    assert done.code == 1
    assert "by somebody else" in done.err
    assert "milk" in only(left_behind(izzy)).read_text()
    assert izzy.run("show", note).ok().text.startswith("Cocoa\n")


def test_a_note_is_forgotten_and_brought_back(izzy: Izzy) -> None:
    note = saved(izzy, "Owns a kayak")
    izzy.run("forget", note).ok()
    assert fields_of(izzy.run("list", "kayak", "--status", "deleted"))[0][0] == note
    izzy.run("restore", note).ok()
    assert izzy.run("show", note).ok()


def test_a_person_is_asked_before_a_note_is_forgotten(izzy: Izzy) -> None:
    note = saved(izzy, "Owns a canoe")
    with izzy.terminal("forget", note) as terminal:
        terminal.expect("Owns a canoe")
        terminal.expect("Forget this?")
        terminal.line("n")
        terminal.expect("Nothing was forgotten.")
        assert terminal.end() == 1
    assert izzy.run("show", note).ok()
    with izzy.terminal("forget", note) as terminal:
        terminal.expect("Forget this?")
        terminal.line("y")
        terminal.expect("Forgot")
        assert terminal.end() == 0
    assert izzy.run("show", note).code == 4


def test_a_purge_needs_a_yes_and_gives_a_receipt(izzy: Izzy) -> None:
    note = saved(izzy, "The safe opens with 47-11-08")
    refused = izzy.run("forget", note, "--purge")
    assert refused.code == 2
    assert "--yes" in refused.err
    assert "receipt" in izzy.run("forget", note, "--purge", "--yes").ok().text
    assert izzy.run("restore", note).code == 4
