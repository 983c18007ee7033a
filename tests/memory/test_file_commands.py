"""File commands: what view answers, to the letter, and by which names commands are known."""

import pytest

from apps.core.errors import InvalidInput, NotFound, TooLarge
from apps.memory.files.texts import human_size, numbered
from tests.memory.filing import Files, refusal
from tests.memory.filing import run as run

pytestmark = pytest.mark.django_db

HEADER = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:\n"


def test_an_empty_memory_is_an_empty_directory(run: Files) -> None:
    assert run("view", path="/memories") == HEADER.format("/memories") + "0B\t/memories"


def test_a_directory_is_listed_two_levels_deep_with_sizes(run: Files) -> None:
    run.create("/memories/b.txt", "0123456789")
    run.create("/memories/a/one.txt", "x" * 1536)
    run.create("/memories/a/deep/er/two.txt", "x" * 512)
    run.create("/memories/empty.txt", "")
    run.create("/memories/node_modules/left-pad.js", "x")
    assert run("view", path="/memories") == HEADER.format("/memories") + "\n".join(
        [
            "2.0K\t/memories",
            "2K\t/memories/a/",
            "512B\t/memories/a/deep/",
            "1.5K\t/memories/a/one.txt",
            "10B\t/memories/b.txt",
            "0B\t/memories/empty.txt",
        ]
    )
    assert run("view", path="/memories/a/") == HEADER.format("/memories/a") + "\n".join(
        [
            "2K\t/memories/a",
            "512B\t/memories/a/deep/",
            "512B\t/memories/a/deep/er/",
            "1.5K\t/memories/a/one.txt",
        ]
    )


def test_directories_of_other_case_or_longer_name_are_others(run: Files) -> None:
    run.create("/memories/a/one.txt")
    run.create("/memories/A/two.txt")
    run.create("/memories/ab/three.txt")
    assert "three" not in run("view", path="/memories/a")
    assert "two" not in run("view", path="/memories/a")
    run("delete", path="/memories/a")
    assert run.paths() == ["/memories/A/two.txt", "/memories/ab/three.txt"]


@pytest.mark.parametrize(
    ("size", "shown"),
    [(0, "0B"), (10, "10B"), (1023, "1023B"), (1024, "1K"), (1536, "1.5K"), (2 * 1024**2, "2M")],
)
def test_sizes_are_short(size: int, shown: str) -> None:
    assert human_size(size) == shown


def test_a_file_is_shown_with_line_numbers(run: Files) -> None:
    run.create("/memories/a.txt", "one\n\ttwo\nthree")
    head = "Here's the content of /memories/a.txt with line numbers:\n"
    whole = "     1\tone\n     2\t\ttwo\n     3\tthree"
    assert run("view", path="/memories/a.txt") == head + whole
    assert (
        run("view", path="/memories/a.txt", view_range=[2, 3]) == head + "     2\t\ttwo\n     3\tthree"
    )
    assert run("view", path="/memories/a.txt", view_range=[3, -1]) == head + "     3\tthree"
    assert run("view", path="/memories/a.txt", view_range=[0, 1]) == head + "     1\tone"
    assert run("view", path="/memories/a.txt", view_range=[1, 99]) == head + whole


@pytest.mark.parametrize("view_range", [[4, 5], [3, 2], [1, -2]])
def test_a_range_outside_the_file_is_refused(run: Files, view_range: list[int]) -> None:
    run.create("/memories/a.txt", "one\ntwo\nthree")
    said = refusal(run, InvalidInput, "view", path="/memories/a.txt", view_range=view_range)
    assert said == (
        f"Error: Invalid `view_range` parameter: {view_range}. "
        "It should be within the range of lines of the file: [1, 3]"
    )


@pytest.mark.parametrize("view_range", ["1-2", [1], [1, 2, 3], [1, "2"], [True, 2], {"a": 1}, [1.5, 2]])
def test_a_range_that_is_none_is_refused(run: Files, view_range: object) -> None:
    run.create("/memories/a.txt")
    assert "view_range" in refusal(
        run, InvalidInput, "view", path="/memories/a.txt", view_range=view_range
    )


def test_too_many_lines_are_not_shown() -> None:
    with pytest.raises(TooLarge) as caught:
        numbered("/memories/a.txt", "\n" * 999_999, None)
    assert caught.value.message == "File /memories/a.txt exceeds maximum line limit of 999,999 lines."
    assert numbered("/memories/a.txt", "\n" * 999_998, [999_999, -1]).endswith("\n999999\t")


def test_what_is_not_there_cannot_be_viewed(run: Files) -> None:
    said = refusal(run, NotFound, "view", path="/memories/no.txt")
    assert said == "The path /memories/no.txt does not exist. Please provide a valid path."


def test_older_names_of_fields_and_commands_are_understood(run: Files) -> None:
    run("write", path="/memories/a.txt", file_text="one\ntwo\n")
    run("str_replace", path="/memories/a.txt", old_string="one", new_string="1")
    run("insert", path="/memories/a.txt", insert_line=2, new_str="three")
    run("replace", path="/memories/a.txt", old_str="two", new_str="2")
    assert run.text("/memories/a.txt") == "1\n2\nthree\n"
    run("move", old_path="/memories/a.txt", new_path="/memories/b.txt")
    assert "/memories/b.txt" in run("list", path="/memories")
    assert "three" in run("read", path="/memories/b.txt")
    run("remove", path="/memories/b.txt")
    assert run.paths() == []
