"""`manage.py backup`: a copy made while others write, restored elsewhere."""

import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from apps.core.management.commands import backup


@pytest.fixture
def data(tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data directory in use: its newest rows stand in the log beside the database."""
    folder = tmp_path / "data"
    (folder / "capabilities" / "one" / "v1").mkdir(parents=True)
    (folder / "capabilities" / "one" / "v1" / "main.py").write_text("def run(args): ...")
    (folder / "sandbox" / "layers").mkdir(parents=True)
    (folder / "secret_key").write_text("signs")
    (folder / "secrets_key").write_text("opens")
    with closing(sqlite3.connect(folder / "izzy.sqlite3", isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("CREATE TABLE pairs (a INTEGER, b INTEGER)")
    settings.IZZY_DATA_DIR = folder
    monkeypatch.setattr(backup, "database_file", lambda: folder / "izzy.sqlite3")
    return folder


def test_the_copy_holds_everything_as_of_one_moment_while_others_write(
    data: Path, tmp_path: Path
) -> None:
    stop = threading.Event()
    written: list[int] = []

    def write() -> None:
        with closing(sqlite3.connect(data / "izzy.sqlite3", isolation_level=None)) as database:
            while not stop.is_set():
                number = len(written)
                database.execute("BEGIN IMMEDIATE")
                database.execute("INSERT INTO pairs VALUES (?, 0)", (number,))
                database.execute("INSERT INTO pairs VALUES (?, 1)", (number,))
                database.execute("COMMIT")
                written.append(number)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        while len(written) < 20:
            assert writer.is_alive()
        before = len(written)
        call_command("backup", str(tmp_path / "copy"))
    finally:
        stop.set()
        writer.join()
    copy = tmp_path / "copy"
    with closing(sqlite3.connect(copy / "izzy.sqlite3")) as database:
        halves = dict(database.execute("SELECT b, count(*) FROM pairs GROUP BY b").fetchall())
    assert halves[0] == halves[1] >= before
    assert (copy / "capabilities" / "one" / "v1" / "main.py").read_text() == "def run(args): ..."
    assert (copy / "secret_key").read_text() == "signs"
    assert (copy / "secrets_key").read_text() == "opens"
    assert not (copy / "sandbox").exists()
    assert sorted(path.name for path in copy.iterdir() if path.name.startswith("izzy")) == [
        "izzy.sqlite3"
    ]
    assert stat.S_IMODE(copy.stat().st_mode) == 0o700
    assert stat.S_IMODE((copy / "izzy.sqlite3").stat().st_mode) == 0o600


def test_the_keys_can_be_left_out(data: Path, tmp_path: Path) -> None:
    call_command("backup", str(tmp_path / "copy"), "--without-keys")
    assert sorted(path.name for path in (tmp_path / "copy").iterdir()) == [
        "capabilities",
        "izzy.sqlite3",
    ]


def test_a_copy_replaces_nothing_and_lies_outside(data: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for place in (tmp_path / "there", data / "copy"):
        with pytest.raises(CommandError):
            call_command("backup", str(place))
    assert not any((tmp_path / "there").iterdir())
    assert not (data / "copy").exists()


def test_a_damaged_database_is_told_and_nothing_is_left(data: Path, tmp_path: Path) -> None:
    (data / "izzy.sqlite3").write_bytes(b"this is no database at all" * 200)
    with pytest.raises(CommandError, match="not a database"):
        call_command("backup", str(tmp_path / "copy"))
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_without_a_database_there_is_nothing_to_copy(data: Path, tmp_path: Path) -> None:
    (data / "izzy.sqlite3").unlink()
    with pytest.raises(CommandError, match="There is no database"):
        call_command("backup", str(tmp_path / "copy"))


def test_an_empty_database_is_no_backup(data: Path, tmp_path: Path) -> None:
    (data / "izzy.sqlite3").unlink()
    (data / "izzy.sqlite3").touch()
    with pytest.raises(CommandError, match="the database is empty"):
        call_command("backup", str(tmp_path / "copy"))
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
