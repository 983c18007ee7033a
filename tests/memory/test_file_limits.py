"""File commands refuse paths that lead elsewhere, what is no text, too much of anything."""

import pytest

from apps.accounts.models import User
from apps.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from apps.memory.files import services as files
from apps.memory.files.texts import MAX_FILE_CHARS
from tests.memory.filing import Files, refusal
from tests.memory.filing import run as run

pytestmark = pytest.mark.django_db


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


@pytest.mark.parametrize(
    "text", ["\x00", "a\x00b", "\ud800", "\x1b[2J", "\x07", 5, ["x"], {"a": 1}, None]
)
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
