"""Commands that change files: create, str_replace, insert, delete, rename."""

from typing import Any

import pytest

from apps.core.errors import Conflict, InvalidInput, NotFound
from tests.memory.filing import Files, refusal
from tests.memory.filing import run as run

pytestmark = pytest.mark.django_db


def test_create_makes_and_overwrites_files(run: Files) -> None:
    done = "File created successfully at: /memories/a/b.txt"
    assert run("create", path="/memories/a/b.txt", file_text="  one\n\n") == done
    assert run.text("/memories/a/b.txt") == "  one\n\n"
    assert run("create", path="/memories/a/b.txt", file_text="two") == done
    assert run.text("/memories/a/b.txt") == "two"


def test_a_file_cannot_be_where_a_directory_is_nor_in_a_file(run: Files) -> None:
    run.create("/memories/a/b.txt")
    assert "/memories/a is a directory" in refusal(
        run, Conflict, "create", path="/memories/a", file_text="x"
    )
    assert "/memories is a directory" in refusal(
        run, Conflict, "create", path="/memories", file_text="x"
    )
    said = refusal(run, Conflict, "create", path="/memories/a/b.txt/c/d.txt", file_text="x")
    assert "/memories/a/b.txt is a file" in said
    run.create("/memories/z.txt")
    assert "is a file" in refusal(
        run, Conflict, "rename", old_path="/memories/z.txt", new_path="/memories/a/b.txt/z"
    )
    assert run.paths() == ["/memories/a/b.txt", "/memories/z.txt"]


def test_str_replace_shows_the_lines_around_the_change(run: Files) -> None:
    run.create("/memories/a.txt", "1\n2\n3\n4\n5\n6\n7")
    said = run("str_replace", path="/memories/a.txt", old_str="4", new_str="four")
    assert said == (
        "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
        "     2\t2\n     3\t3\n     4\tfour\n     5\t5\n     6\t6"
    )
    assert run.text("/memories/a.txt") == "1\n2\n3\nfour\n5\n6\n7"
    assert run("str_replace", path="/memories/a.txt", old_str="1\n", new_str="a\nb\n").endswith(
        "     1\ta\n     2\tb\n     3\t2\n     4\t3\n     5\tfour"
    )


@pytest.mark.parametrize("fields", [{}, {"new_str": ""}, {"new_str": None}, {"new_string": ""}])
def test_without_a_new_text_the_old_one_goes(run: Files, fields: dict[str, Any]) -> None:
    run.create("/memories/a.txt", "one two three")
    run("str_replace", path="/memories/a.txt", old_str=" two", **fields)
    assert run.text("/memories/a.txt") == "one three"


def test_str_replace_refuses_what_it_cannot_place(run: Files) -> None:
    run.create("/memories/a.txt", "tea\nmilk\ntea")
    absent = refusal(run, Conflict, "str_replace", path="/memories/a.txt", old_str="rum", new_str="x")
    assert absent == (
        "No replacement was performed, old_str `rum` did not appear verbatim in /memories/a.txt."
    )
    twice = refusal(run, Conflict, "str_replace", path="/memories/a.txt", old_str="tea", new_str="x")
    assert twice == (
        "No replacement was performed. Multiple occurrences of old_str `tea` in lines: 1, 3. "
        "Please ensure it is unique"
    )
    missing = refusal(run, NotFound, "str_replace", path="/memories/no.txt", old_str="a", new_str="b")
    assert missing == "Error: The path /memories/no.txt does not exist. Please provide a valid path."
    assert "empty" in refusal(run, InvalidInput, "str_replace", path="/memories/a.txt", old_str="")
    assert run.text("/memories/a.txt") == "tea\nmilk\ntea"


@pytest.mark.parametrize(
    ("before", "line", "text", "after"),
    [
        ("one\ntwo\n", 0, "zero", "zero\none\ntwo\n"),
        ("one\ntwo\n", 1, "and\n", "one\nand\ntwo\n"),
        ("one\ntwo", 2, "three", "one\ntwo\nthree\n"),
        ("", 0, "first", "first\n"),
        ("one\n", 1, "\n", "one\n\n"),
        ("one\n", 1, "a\nb", "one\na\nb\n"),
    ],
)
def test_insert_puts_lines_after_a_line(
    run: Files, before: str, line: int, text: str, after: str
) -> None:
    run.create("/memories/a.txt", before)
    said = run("insert", path="/memories/a.txt", insert_line=line, insert_text=text)
    assert said == "The file /memories/a.txt has been edited."
    assert run.text("/memories/a.txt") == after


def test_insert_refuses_a_line_that_is_not_there(run: Files) -> None:
    run.create("/memories/a.txt", "one\ntwo\n")
    for line in (3, -1):
        said = refusal(
            run, InvalidInput, "insert", path="/memories/a.txt", insert_line=line, insert_text="x"
        )
        assert said == (
            f"Error: Invalid `insert_line` parameter: {line}. "
            "It should be within the range of lines of the file: [0, 2]"
        )
    missing = refusal(run, NotFound, "insert", path="/memories/no.txt", insert_line=0, insert_text="x")
    assert missing == "Error: The path /memories/no.txt does not exist"


@pytest.mark.parametrize("line", ["1", 1.0, True, None, [1], 10**30])
def test_a_line_number_that_is_none_is_refused(run: Files, line: object) -> None:
    run.create("/memories/a.txt", "one\ntwo\n")
    said = refusal(
        run, InvalidInput, "insert", path="/memories/a.txt", insert_line=line, insert_text="x"
    )
    assert "insert_line" in said


def test_delete_takes_a_file_or_a_directory_with_all_in_it(run: Files) -> None:
    for path in ("/memories/a/b.txt", "/memories/a/c/d.txt", "/memories/e.txt"):
        run.create(path)
    assert run("delete", path="/memories/a") == "Successfully deleted /memories/a"
    assert run.paths() == ["/memories/e.txt"]
    assert run("delete", path="/memories/e.txt") == "Successfully deleted /memories/e.txt"
    said = refusal(run, NotFound, "delete", path="/memories/a")
    assert said == "Error: The path /memories/a does not exist"
    said = refusal(run, InvalidInput, "delete", path="/memories/")
    assert said == "Cannot delete the /memories directory itself"


def test_a_path_is_free_again_after_a_deletion(run: Files) -> None:
    run.create("/memories/a.txt", "old")
    run("delete", path="/memories/a.txt")
    run.create("/memories/a.txt", "new")
    run("delete", path="/memories/a.txt")
    run.create("/memories/a.txt/as/directory.txt")
    assert run.paths() == ["/memories/a.txt/as/directory.txt"]


def test_rename_moves_a_file_or_a_directory(run: Files) -> None:
    run.create("/memories/a/b.txt", "b")
    run.create("/memories/a/c/d.txt", "d")
    said = run("rename", old_path="/memories/a", new_path="/memories/new/place")
    assert said == "Successfully renamed /memories/a to /memories/new/place"
    assert run.paths() == ["/memories/new/place/b.txt", "/memories/new/place/c/d.txt"]
    run("rename", old_path="/memories/new/place/b.txt", new_path="/memories/b.txt")
    assert run.text("/memories/b.txt") == "b"


def test_rename_overwrites_nothing(run: Files) -> None:
    run.create("/memories/a.txt")
    run.create("/memories/b.txt")
    run.create("/memories/c/d.txt")
    for new in ("/memories/b.txt", "/memories/c", "/memories/a.txt", "/memories"):
        said = refusal(run, Conflict, "rename", old_path="/memories/a.txt", new_path=new)
        assert said == f"Error: The destination {new} already exists"
    said = refusal(run, NotFound, "rename", old_path="/memories/no", new_path="/memories/e")
    assert said == "Error: The path /memories/no does not exist"
    said = refusal(run, InvalidInput, "rename", old_path="/memories", new_path="/memories/e")
    assert said == "Cannot rename the /memories directory itself"
    assert "into itself" in refusal(
        run, Conflict, "rename", old_path="/memories/c", new_path="/memories/c/e"
    )
    assert run.paths() == ["/memories/a.txt", "/memories/b.txt", "/memories/c/d.txt"]
