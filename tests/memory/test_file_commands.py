"""The six file commands: the sentences they answer with, to the letter, and what they refuse."""

from typing import Any

import pytest

from apps.accounts.models import User
from apps.core.errors import Conflict, InvalidInput, IzzyError, NotFound, TooLarge
from apps.memory.files.commands import command_run
from apps.memory.files.texts import MAX_FILE_CHARS, human_size, numbered
from apps.memory.models import MemoryFile
from apps.memory.services import BY_ASSISTANT, files

pytestmark = pytest.mark.django_db

HEADER = (
    "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:\n"
)


class Files:
    """The commands of one user."""

    def __init__(self, user: User) -> None:
        self.user = user

    def __call__(self, command: object, **fields: Any) -> str:
        return command_run(user_id=self.user.pk, fields={"command": command, **fields}, change=BY_ASSISTANT)

    def create(self, path: str, text: str = "x") -> None:
        self("create", path=path, file_text=text)

    def text(self, path: str) -> str:
        return MemoryFile.objects.for_user(self.user).get(path=path).content

    def paths(self) -> list[str]:
        return sorted(MemoryFile.objects.for_user(self.user).values_list("path", flat=True))


@pytest.fixture
def run(alice: User) -> Files:
    return Files(alice)


def refusal(run: Files, kind: type[IzzyError], command: object, **fields: Any) -> str:
    with pytest.raises(kind) as caught:
        run(command, **fields)
    return caught.value.message


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
    assert run("view", path="/memories/a.txt", view_range=[2, 3]) == head + "     2\t\ttwo\n     3\tthree"
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
    assert "view_range" in refusal(run, InvalidInput, "view", path="/memories/a.txt", view_range=view_range)


def test_too_many_lines_are_not_shown() -> None:
    with pytest.raises(TooLarge) as caught:
        numbered("/memories/a.txt", "\n" * 999_999, None)
    assert caught.value.message == "File /memories/a.txt exceeds maximum line limit of 999,999 lines."
    assert numbered("/memories/a.txt", "\n" * 999_998, [999_999, -1]).endswith("\n999999\t")


def test_what_is_not_there_cannot_be_viewed(run: Files) -> None:
    said = refusal(run, NotFound, "view", path="/memories/no.txt")
    assert said == "The path /memories/no.txt does not exist. Please provide a valid path."


def test_create_makes_and_overwrites_files(run: Files) -> None:
    done = "File created successfully at: /memories/a/b.txt"
    assert run("create", path="/memories/a/b.txt", file_text="  one\n\n") == done
    assert run.text("/memories/a/b.txt") == "  one\n\n"
    assert run("create", path="/memories/a/b.txt", file_text="two") == done
    assert run.text("/memories/a/b.txt") == "two"


def test_a_file_cannot_be_where_a_directory_is_nor_in_a_file(run: Files) -> None:
    run.create("/memories/a/b.txt")
    assert "/memories/a is a directory" in refusal(run, Conflict, "create", path="/memories/a", file_text="x")
    assert "/memories is a directory" in refusal(run, Conflict, "create", path="/memories", file_text="x")
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
def test_insert_puts_lines_after_a_line(run: Files, before: str, line: int, text: str, after: str) -> None:
    run.create("/memories/a.txt", before)
    said = run("insert", path="/memories/a.txt", insert_line=line, insert_text=text)
    assert said == "The file /memories/a.txt has been edited."
    assert run.text("/memories/a.txt") == after


def test_insert_refuses_a_line_that_is_not_there(run: Files) -> None:
    run.create("/memories/a.txt", "one\ntwo\n")
    for line in (3, -1):
        said = refusal(run, InvalidInput, "insert", path="/memories/a.txt", insert_line=line, insert_text="x")
        assert said == (
            f"Error: Invalid `insert_line` parameter: {line}. "
            "It should be within the range of lines of the file: [0, 2]"
        )
    missing = refusal(run, NotFound, "insert", path="/memories/no.txt", insert_line=0, insert_text="x")
    assert missing == "Error: The path /memories/no.txt does not exist"


@pytest.mark.parametrize("line", ["1", 1.0, True, None, [1], 10**30])
def test_a_line_number_that_is_none_is_refused(run: Files, line: object) -> None:
    run.create("/memories/a.txt", "one\ntwo\n")
    said = refusal(run, InvalidInput, "insert", path="/memories/a.txt", insert_line=line, insert_text="x")
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
    assert "into itself" in refusal(run, Conflict, "rename", old_path="/memories/c", new_path="/memories/c/e")
    assert run.paths() == ["/memories/a.txt", "/memories/b.txt", "/memories/c/d.txt"]


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


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc/passwd", "Path must start with /memories, got: /etc/passwd"),
        ("/", "Path must start with /memories, got: /"),
        ("", "Path must start with /memories, got: "),
        ("memories/a.txt", "Path must start with /memories, got: memories/a.txt"),
        ("/memoriesque/a.txt", "Path must start with /memories, got: /memoriesque/a.txt"),
        ("C:\\memories\\a.txt", "Path must start with /memories, got: C:\\memories\\a.txt"),
        ("/memories/../etc/passwd", "Path /memories/../etc/passwd would escape /memories directory"),
        ("/memories/a/../../b", "Path /memories/a/../../b would escape /memories directory"),
        ("/memories/..", "Path /memories/.. would escape /memories directory"),
        ("/memories/ .. /a", "would escape"),
        ("/memories/..\\..\\a", "would escape"),
        ("/memories/%2e%2e/a", "would escape"),
        ("/memories/%2E%2E%2Fa", "would escape"),
        ("/memories/%252e%252e%252fa", "would escape"),
        ("/memories/a%2fb", "would escape"),
        ("/memories/a%5cb", "would escape"),
        ("/memories/a%00b", "would escape"),
        ("/memories/%" + "25" * 20 + "2e%2e", "would escape"),
        ("/memories/.hidden", "hidden"),
        ("/memories/.git/config", "hidden"),
        ("/memories/./a.txt", "hidden"),
        ("/memories/a\x00.txt", "control characters"),
        ("/memories/a\n.txt", "control characters"),
        ("/memories/a\x7f.txt", "control characters"),
        ("/memories/a\x85.txt", "control characters"),
        ("/memories/a\u2028.txt", "control characters"),
        ("/memories/a\ud800.txt", "control characters"),
        ("/memories/ a.txt", "space"),
        ("/memories/a.txt ", "space"),
        ("/memories/" + "a" * 256, "too long"),
        ("/memories/" + "é" * 128, "too long"),
        ("/memories/" + "a/" * 20 + "b", "levels"),
    ],
)
@pytest.mark.parametrize("field", ["path", "old_path", "new_path"])
def test_paths_that_lead_elsewhere_or_cannot_be_are_refused(
    run: Files, path: str, why: str, field: str
) -> None:
    run.create("/memories/a.txt")
    renaming = {"old_path": "/memories/a.txt", "new_path": "/memories/b.txt"}
    fields = {"path": path, "file_text": "x"} if field == "path" else {**renaming, field: path}
    with pytest.raises(InvalidInput) as caught:
        run("create" if field == "path" else "rename", **fields)
    assert why in caught.value.message
    assert caught.value.extra["field"] == field
    caught.value.message.encode()
    assert run.paths() == ["/memories/a.txt"]


@pytest.mark.parametrize("path", [5, None, ["/memories/a"], {"a": 1}, True])
def test_a_path_that_is_no_text_is_refused(run: Files, path: object) -> None:
    assert "path" in refusal(run, InvalidInput, "create", path=path, file_text="x")


def test_an_endless_path_is_refused(run: Files) -> None:
    with pytest.raises(TooLarge):
        run("view", path="/memories/" + "a" * 10_000_000)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("/memories//a///b.txt", "/memories/a/b.txt"),
        ("/memories/a.txt/", "/memories/a.txt"),
        ("/memories/cafe\u0301.txt", "/memories/caf\u00e9.txt"),
        ("/memories/50%.txt", "/memories/50%.txt"),
        ("/memories/100%25.txt", "/memories/100%25.txt"),
        ("/memories/a..b.txt", "/memories/a..b.txt"),
        ("/memories/with space & ünï/日本.md", "/memories/with space & ünï/日本.md"),
    ],
)
def test_a_place_has_one_spelling(run: Files, written: str, meant: str) -> None:
    run.create(written)
    run.create(meant, "again")
    assert run.paths() == [meant]


@pytest.mark.parametrize("text", ["\x00", "a\x00b", "\ud800", "\x1b[2J", "\x07", 5, ["x"], {"a": 1}, None])
def test_what_is_no_text_is_not_written(run: Files, text: object) -> None:
    run.create("/memories/a.txt", "one\n")
    refusal(run, InvalidInput, "create", path="/memories/a.txt", file_text=text)
    refusal(run, InvalidInput, "insert", path="/memories/a.txt", insert_line=0, insert_text=text)
    refusal(run, InvalidInput, "str_replace", path="/memories/a.txt", old_str=text, new_str="x")
    if text is not None:
        refusal(run, InvalidInput, "str_replace", path="/memories/a.txt", old_str="one", new_str=text)
    assert run.text("/memories/a.txt") == "one\n"


def test_a_file_has_a_largest_size(run: Files) -> None:
    largest = "x" * MAX_FILE_CHARS
    run.create("/memories/a.txt", largest)
    for command, fields in (
        ("create", {"file_text": largest + "x"}),
        ("create", {"file_text": "x" * 10_000_000}),
        ("insert", {"insert_line": 0, "insert_text": "y"}),
        ("str_replace", {"old_str": largest, "new_str": largest + "x"}),
    ):
        said = refusal(run, TooLarge, command, path="/memories/a.txt", **fields)
        assert "100,000" in said
        assert len(said) < 300
    assert run.text("/memories/a.txt") == largest


def test_a_user_has_a_largest_number_of_files(run: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_FILES", 2)
    run.create("/memories/a.txt")
    run.create("/memories/b.txt")
    assert "2 files" in refusal(run, Conflict, "create", path="/memories/c.txt", file_text="x")
    run.create("/memories/a.txt", "overwritten")


def test_a_moved_directory_must_not_make_paths_too_long(run: Files) -> None:
    run.create("/memories/a/" + "b" * 250 + "/" + "c" * 200)
    with pytest.raises(TooLarge):
        run("rename", old_path="/memories/a", new_path="/memories/" + "d" * 100)
    assert run.paths() == ["/memories/a/" + "b" * 250 + "/" + "c" * 200]


@pytest.mark.parametrize("command", [None, "", "format", "VIEW", 5, ["view"], {"a": 1}])
def test_other_commands_are_refused_with_the_ones_there_are(run: Files, command: object) -> None:
    said = refusal(run, InvalidInput, command, path="/memories")
    assert "view, create, str_replace, insert, delete, rename" in said


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("create", "path"),
        ("str_replace", "path"),
        ("insert", "path"),
        ("delete", "path"),
        ("rename", "old_path"),
    ],
)
def test_a_missing_field_is_named(run: Files, command: str, missing: str) -> None:
    fields = {"file_text": "x", "old_str": "x", "insert_line": 0, "insert_text": "x"}
    assert refusal(run, InvalidInput, command, **fields) == f"{missing} is missing."


def test_files_of_two_users_are_apart(run: Files, bob: User) -> None:
    his = Files(bob)
    run.create("/memories/a.txt", "hers")
    assert "a.txt" not in his("view", path="/memories")
    for command, fields in (
        ("view", {"path": "/memories/a.txt"}),
        ("str_replace", {"path": "/memories/a.txt", "old_str": "hers", "new_str": "his"}),
        ("insert", {"path": "/memories/a.txt", "insert_line": 0, "insert_text": "his"}),
        ("delete", {"path": "/memories/a.txt"}),
        ("rename", {"old_path": "/memories/a.txt", "new_path": "/memories/b.txt"}),
    ):
        refusal(his, NotFound, command, **fields)
    his.create("/memories/a.txt", "his")
    assert run.text("/memories/a.txt") == "hers"
    assert his.text("/memories/a.txt") == "his"
