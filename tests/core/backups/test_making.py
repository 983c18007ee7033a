"""`manage.py backup`: what it takes with it, and what it does about files that go while it copies."""

import json
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from pytest_django import Settings

from apps.accounts.models import User
from apps.capabilities.catalog.lifecycle import capability_delete
from apps.capabilities.models import Capability
from apps.core.keys import STATE, refuse_other_keys
from apps.core.management.commands import backup
from apps.core.models import InstanceState
from apps.memory.notes.creation import memory_create
from apps.memory.transfer.jobs import import_cancel, import_create
from apps.memory.transfer.storage import import_path
from tests.capabilities.making import GREETING, make

from .conftest import Rows, Watched

pytestmark = pytest.mark.django_db(transaction=True)
BackUp = Callable[..., Path]


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def files_of(*capabilities: Capability) -> set[str]:
    every = ("main.py", "requirements.txt", "manifest.json", "RUN.md")
    return {f"{one.path}/{name}" for one in capabilities for name in every}


def test_it_holds_rows_their_files_and_the_keys_and_nothing_else(
    data: Path, alice: User, back_up: BackUp, rows: Rows
) -> None:
    memory_create(user_id=alice.pk, content="I live in Lyon.")
    greeter = make(alice)
    waiting, cancelled = (
        import_create(user_id=alice.pk, chunks=[b"# Garden"], name="garden.md") for _ in range(2)
    )
    import_cancel(user_id=alice.pk, import_id=cancelled.pk)
    import_path(cancelled.pk).write_text("A crash left this.")
    (data / "capabilities" / "stray").mkdir()
    (data / "capabilities" / "stray" / "main.py").write_text("A crash left this, too.")
    (data / "notice.txt").write_text("Whoever looks after this machine wrote that.")

    copy = back_up()
    assert names(copy) == files_of(greeter) | {
        "izzy.sqlite3",
        "secret_key",
        "secrets_key",
        "notice.txt",
        "backup.json",
        f"imports/{waiting.pk}",
    }
    assert (copy / greeter.path / "main.py").read_text() == GREETING
    assert (copy / "imports" / str(waiting.pk)).read_bytes() == b"# Garden"
    assert not (copy / "capabilities" / "stray").exists()
    assert rows(copy, "SELECT content FROM memory_memory") == [("I live in Lyon.",)]
    assert rows(copy, "SELECT count(*) FROM search_terms_idx")[0][0] > 0
    (copy / "notice.txt").unlink()  # its mode is its owner's, as its text
    for private in [copy, *filter(Path.is_file, copy.rglob("*"))]:
        assert not private.stat().st_mode & 0o077, private


def test_the_keys_can_be_left_out(back_up: BackUp) -> None:
    assert names(back_up("--without-keys")) == {"izzy.sqlite3", "backup.json"}


def test_keys_that_are_not_the_database_s_are_no_backup_of_it(
    data: Path,
    tmp_path: Path,
    back_up: BackUp,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An operator's shell has another IZZY_DATA_DIR than the service, and the settings have just made new keys there."""
    monkeypatch.setattr("apps.core.keys.database_file", lambda: None)  # a server's
    back_up()
    assert not InstanceState.objects.filter(key=STATE).exists()  # it only looks
    refuse_other_keys()
    back_up()
    settings.IZZY_SECRETS_KEY = "made a moment ago"
    with pytest.raises(CommandError, match=r"IZZY_SECRETS_KEY of this process.*IZZY_DATA_DIR"):
        call_command("backup", str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()
    assert names(back_up("--without-keys")) == {"izzy.sqlite3", "backup.json"}


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[str], object]], None]:
    """`watch(opened)`: `opened` hears of each file before it is copied."""
    return lambda opened: monkeypatch.setattr(Watched, "opened", staticmethod(opened))


def elsewhere(work: Callable[[], object]) -> None:
    """Another process of Izzy's does it, to the end."""

    def run() -> None:
        try:
            work()
        finally:
            connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def test_what_is_made_while_files_are_copied_and_gone_a_moment_later_is_in_neither_files_nor_rows(
    data: Path, alice: User, back_up: BackUp, rows: Rows, watch: Callable[..., None]
) -> None:
    stays = make(alice, "stays")
    made: list[Capability] = []

    def opened(name: str) -> None:
        if not made:  # the files of before are just being copied
            elsewhere(lambda: made.append(make(alice, "goes")))
        elif name.startswith(made[0].path) and (data / made[0].path).exists():  # the view has it
            elsewhere(lambda: capability_delete(user_id=alice.pk, capability_id=made[0].pk))

    watch(opened)
    copy = back_up()
    assert made
    assert not (data / made[0].path).exists()
    assert rows(copy, "SELECT name FROM capabilities_capability") == [("stays",)]
    assert {name for name in names(copy) if name.startswith("capabilities/")} == files_of(stays)
    assert json.loads((copy / "backup.json").read_text())["lost"] == []


def test_what_was_copied_and_then_deleted_is_taken_out_again(
    alice: User, back_up: BackUp, rows: Rows, watch: Callable[..., None]
) -> None:
    first, second = make(alice, "first"), make(alice, "second")

    def opened(name: str) -> None:
        if name.startswith(second.path) and Capability.objects.for_user(alice.pk).count() == 2:
            elsewhere(lambda: capability_delete(user_id=alice.pk, capability_id=first.pk))

    watch(opened)
    copy = back_up()
    assert rows(copy, "SELECT name FROM capabilities_capability") == [("second",)]
    assert {name for name in names(copy) if name.startswith("capabilities/")} == files_of(second)


def test_it_gives_up_where_files_go_without_end(
    data: Path, alice: User, tmp_path: Path, watch: Callable[..., None]
) -> None:
    def replace() -> None:
        for one in Capability.objects.for_user(alice.pk):
            capability_delete(user_id=alice.pk, capability_id=one.pk)
        make(alice)

    make(alice)
    watch(lambda name: elsewhere(replace) if (data / name).exists() else None)
    with pytest.raises(CommandError, match="try again when less is going on"):
        call_command("backup", str(tmp_path / "copy"))
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_files_that_are_lost_or_were_changed_where_they_lie_are_told_and_hold_nothing_up(
    data: Path, alice: User, back_up: BackUp, capsys: pytest.CaptureFixture[str]
) -> None:
    greeter = make(alice)
    (data / greeter.path / "main.py").write_text("def run(args): return 'Ha!'")
    (data / greeter.path / "RUN.md").unlink()
    copy = back_up()
    assert (copy / greeter.path / "main.py").read_text() == "def run(args): return 'Ha!'"
    assert names(copy / greeter.path) == {"main.py", "requirements.txt", "manifest.json"}
    assert "Warning: 2 files" in capsys.readouterr().err
    lost = json.loads((copy / "backup.json").read_text())["lost"]
    assert lost == sorted(f"{greeter.path}/{name}" for name in ("main.py", "RUN.md"))


def test_a_copy_replaces_nothing_and_lies_outside(data: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    for place in (tmp_path / "there", data / "copy"):
        with pytest.raises(CommandError):
            call_command("backup", str(place))
    assert not any((tmp_path / "there").iterdir())
    assert not (data / "copy").exists()
    with pytest.raises(CommandError, match="cannot be looked at"):
        call_command("backup", str(tmp_path / ("x" * 300)))


def test_a_full_disk_is_the_one_that_the_backup_was_to_lie_on(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object, **options: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(backup, "backup_make", full)
    with pytest.raises(CommandError, match=f"the disk is full. Make room where {tmp_path / 'copy'}"):
        call_command("backup", str(tmp_path / "copy"))


@pytest.mark.parametrize("empty", [True, False])
def test_without_a_database_there_is_nothing_to_copy(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    file = tmp_path / "none.sqlite3"
    if empty:
        file.touch()
    monkeypatch.setattr(backup, "database_file", lambda: file)
    with pytest.raises(CommandError, match="There is no database"):
        call_command("backup", str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()
