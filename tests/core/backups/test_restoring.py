"""`manage.py restore`: what is there afterwards, what it refuses, and that a refusal changes nothing."""

import errno
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

import manage
from apps.accounts.models import User
from apps.chat.models import Conversation
from apps.core.backups import BackupFailed, restoring
from apps.core.backups.restoring import Restored, backup_restore
from apps.core.db.copying import CopyFailed
from apps.core.db.engines import sqlite_settings
from apps.core.jobs.running import Running, data_directory_alone, data_directory_hold
from apps.core.management.commands import restore as restore_command
from apps.memory.notes.creation import memory_create
from izzysite.env import database_settings
from tests.capabilities.making import GREETING, make
from tests.peers.postgres import postgres

from .conftest import Rows

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("TEST_DATABASE_URL" in os.environ, reason="a backup is the same from any engine"),
]
Restore = Callable[..., Restored]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    """Another data directory, which has the key that the settings make."""
    folder = tmp_path / "new" / "data"
    folder.mkdir(parents=True)
    (folder / "secrets_key").write_text("made a moment ago")
    return folder


@pytest.fixture
def restore(target: Path, settings: Settings) -> Restore:
    """`restore(backup)`, as an Izzy does that has the other data directory."""

    def put(
        backup: Path,
        *,
        force: bool = False,
        database: dict[str, Any] | None = None,
        say: Callable[[str], None] = print,
    ) -> Restored:
        settings.IZZY_DATA_DIR = target
        if settings.STORAGES["shared"]["OPTIONS"]:
            shared: dict[str, Any] = settings.STORAGES["shared"] | {"OPTIONS": {"location": target}}
            settings.STORAGES = settings.STORAGES | {"shared": shared}
        file = sqlite_settings(target / "izzy.sqlite3")
        return backup_restore(backup, target, database or file, say, force=force)

    return put


@pytest.fixture
def backup(alice: User, back_up: Callable[..., Path]) -> Path:
    """One of an instance with a note, a tool, and a conversation that a process holds."""
    memory_create(user_id=alice.pk, content="I live in Lyon.")
    make(alice)
    until = timezone.now() + timedelta(seconds=15)
    Conversation.objects.create(user=alice, runner="gone-1-ab", lease_until=until)
    return back_up()


def everything(folder: Path) -> dict[str, bytes]:
    """Files by their names, but for what stands beside a database that somebody looks at, and the lock."""
    found = {str(path.relative_to(folder)): path for path in folder.rglob("*") if path.is_file()}
    beside = (".running", "-wal", "-shm")
    return {name: path.read_bytes() for name, path in found.items() if not name.endswith(beside)}


def test_rows_files_and_keys_are_those_of_the_backup_and_leases_are_free(
    backup: Path, restore: Restore, target: Path, rows: Rows
) -> None:
    before = everything(backup)
    assert restore(backup) == Restored(kept=None, keys=True)
    assert rows(target, "SELECT content FROM memory_memory") == [("I live in Lyon.",)]
    assert rows(target, "SELECT runner, lease_until FROM chat_conversation") == [("", None)]
    ((path,),) = rows(target, "SELECT path FROM capabilities_capability")
    assert (target / path / "main.py").read_text() == GREETING
    assert (target / "secrets_key").read_text() == "secrets_key"
    assert "backup.json" not in everything(target)
    assert [path.name for path in target.parent.iterdir()] == ["data"]
    assert everything(backup) == before


def test_what_everybody_could_read_of_the_backup_is_closed(
    backup: Path, restore: Restore, target: Path
) -> None:
    for path in backup.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    restore(backup)
    restored = [path for path in target.rglob("*") if path.name != ".running"]
    assert target / "secrets_key" in restored
    assert [path for path in restored if path.stat().st_mode & 0o077] == []


def test_where_an_izzy_is_only_force_takes_its_place_and_keeps_it(
    backup: Path, restore: Restore, target: Path
) -> None:
    restore(backup)
    (target / "notice.txt").write_text("Mine.")
    before = everything(target)
    with pytest.raises(BackupFailed, match="holds an Izzy already"):
        restore(backup)
    assert everything(target) == before
    kept = restore(backup, force=True).kept
    assert kept
    assert kept.parent == target.parent
    assert everything(kept) == before
    assert "notice.txt" not in everything(target)


def test_a_data_directory_may_be_a_mount_of_the_disk_beside_it(
    backup: Path, restore: Restore, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore(backup)
    before, rename = everything(target), Path.rename

    def within_a_mount(path: Path, to: Path) -> Path:
        if target in path.parents and target not in to.parents:
            raise OSError(errno.EXDEV, "Invalid cross-device link")
        return rename(path, to)

    monkeypatch.setattr(Path, "rename", within_a_mount)
    kept = restore(backup, force=True).kept
    assert kept
    assert kept.parent == target
    assert everything(kept) == before


def test_what_an_interrupted_restore_has_put_aside_is_never_lost(
    backup: Path, restore: Restore, target: Path
) -> None:
    restore(backup)
    # Within: a disk of its own has no room beside it.
    aside = target / ".data.before-restore-20310501T120000"
    aside.mkdir()
    for entry in list(target.iterdir()):
        if entry not in {aside, target / ".running"}:
            entry.rename(aside / entry.name)
    before = everything(aside)
    with pytest.raises(BackupFailed, match="holds an Izzy already"):
        restore(backup)
    restore(backup, force=True)
    assert everything(aside) == before
    assert (target / "izzy.sqlite3").exists()


def test_a_file_beside_an_unused_database_is_kept(backup: Path, restore: Restore, target: Path) -> None:
    (target / "notice.txt").write_text("Mine.")
    (target / "izzy.sqlite3").touch()
    (target / "capabilities").mkdir()
    kept = restore(backup).kept
    assert kept
    assert everything(kept) == {"notice.txt": b"Mine."}


def test_a_data_directory_may_be_a_disk_of_its_own(
    backup: Path, restore: Restore, target: Path, back_up: Callable[..., Path], data: Path
) -> None:
    without_manifest(backup)
    for folder in (data, backup, target):
        (folder / "lost+found").mkdir(mode=0o700)
        (folder / "lost+found" / "#12").write_text(folder.name)
    assert not (back_up() / "lost+found").exists()
    assert restore(backup) == Restored(kept=None, keys=True)
    kept = restore(backup, force=True).kept
    assert kept
    assert not (kept / "lost+found").exists()
    assert (target / "lost+found" / "#12").read_text() == "data"


def test_a_plain_copy_of_a_data_directory_is_restored_without_what_is_of_that_one_alone(
    backup: Path, restore: Restore, target: Path, rows: Rows
) -> None:
    without_manifest(backup)
    for folder, words in ((backup, "theirs"), (target, "ours")):
        (folder / "metrics").mkdir()
        (folder / "metrics" / "counts").write_text(words)
    (backup / ".data.before-restore-20310501T120000").mkdir()
    (backup / ".running").touch()
    restore(backup)
    assert rows(target, "SELECT content FROM memory_memory") == [("I live in Lyon.",)]
    assert (target / "metrics" / "counts").read_text() == "ours"
    assert [path.name for path in target.iterdir() if path.name.startswith(".")] == [".running"]


def test_where_a_file_cannot_be_put_in_place_the_data_directory_is_as_it_was(
    backup: Path, restore: Restore, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    restore(backup)
    (target / "notice.txt").write_text("Mine.")
    before, rename, placed = everything(target), Path.rename, list[Path]()

    def fail(path: Path, place: Path) -> Path:
        if path.parent.name == ".restore.part":
            if placed:
                raise OSError("No space left on device")
            placed.append(path)
        return rename(path, place)

    monkeypatch.setattr(Path, "rename", fail)
    with pytest.raises(OSError, match="No space left"):
        restore(backup, force=True)
    assert everything(target) == before
    assert [path.name for path in target.parent.iterdir()] == ["data"]


@pytest.mark.long
def test_where_files_cannot_be_put_in_place_a_server_s_rows_are_gone_on_with(
    backup: Path, restore: Restore, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(part: Path, data: Path, *, without: str | None = None) -> Path:
        raise OSError("No space left on device")

    with postgres() as server:
        to_server = partial(restore, backup, database=database_settings(server.url(), 4, "The address"))
        with monkeypatch.context() as patched:
            patched.setattr(restoring, "_put_in_place", fail)
            with pytest.raises(OSError, match="No space left"):
                to_server()
        before = everything(target)
        said: list[str] = []
        assert to_server(say=said.append) == Restored(kept=None, keys=True)
        assert said[0] == "Going on with the copy that was begun."
        assert before == {"secrets_key": b"made a moment ago"}
        assert everything(target).keys() >= {"secret_key", "secrets_key"}
        assert "izzy.sqlite3" not in everything(target)
        assert [path for path in target.iterdir() if path.name.startswith(".restore")] == []
        with psycopg.connect(server.url()) as database:
            assert database.execute("SELECT content FROM memory_memory").fetchall() == [
                ("I live in Lyon.",)
            ]
        with pytest.raises(CopyFailed, match="is not empty"):
            to_server(force=True)


def test_a_restore_that_fails_tells_what_a_server_has_by_then(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object, **options: object) -> Restored:
        raise OSError("No space left on device")

    monkeypatch.setattr(restore_command, "backup_restore", fail)
    with pytest.raises(CommandError, match="Nothing was restored"):
        call_command("restore", str(tmp_path))
    server = {"default": {"ENGINE": "apps.core.db.postgresql"}}
    monkeypatch.setattr(
        restore_command, "settings", SimpleNamespace(IZZY_DATA_DIR=data, DATABASES=server)
    )
    with pytest.raises(CommandError, match="gone on with when the same backup is restored again"):
        call_command("restore", str(tmp_path))


def test_a_backup_without_keys_leaves_those_that_are_there(
    backup: Path, back_up: Callable[..., Path], restore: Restore, target: Path
) -> None:
    assert restore(back_up("--without-keys")) == Restored(kept=None, keys=False)
    assert (target / "secrets_key").read_text() == "made a moment ago"


def test_files_that_lie_in_another_storage_go_there(
    backup: Path, restore: Restore, target: Path, settings: Settings
) -> None:
    memory = {"BACKEND": "django.core.files.storage.InMemoryStorage", "OPTIONS": {}}
    settings.STORAGES = settings.STORAGES | {"shared": memory}
    restore(backup)
    assert not (target / "capabilities").exists()
    (path,) = (backup / "capabilities").rglob("main.py")
    with storages["shared"].open(str(path.relative_to(backup))) as file:
        assert file.read() == GREETING.encode()
    (target / "izzy.sqlite3").unlink()
    with pytest.raises(BackupFailed, match="holds an Izzy already"):
        restore(backup)


def lose(backup: Path) -> None:
    next((backup / "capabilities").rglob("main.py")).unlink()


def change(backup: Path) -> None:
    next((backup / "capabilities").rglob("main.py")).write_text("def run(args): return 'Ha!'")


def without_manifest(backup: Path) -> None:
    (backup / "backup.json").unlink()


def tear(backup: Path) -> None:
    without_manifest(backup)
    with (backup / "izzy.sqlite3").open("r+b") as file:
        file.truncate(40_000)


def another_program(backup: Path) -> None:
    without_manifest(backup)
    (backup / "izzy.sqlite3").unlink()
    with closing(sqlite3.connect(backup / "izzy.sqlite3")) as database:
        database.execute("CREATE TABLE songs (name)")


def no_database(backup: Path) -> None:
    without_manifest(backup)
    (backup / "izzy.sqlite3").unlink()


def newer(backup: Path) -> None:
    without_manifest(backup)
    with closing(sqlite3.connect(backup / "izzy.sqlite3")) as database, database:
        insert = "INSERT INTO django_migrations (app, name, applied) VALUES ('memory', '0999_later', '2031-01-01')"
        database.execute(insert)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lose, "main.py is missing"),
        (change, "main.py was changed after it was made"),
        (tear, "database is damaged"),
        (another_program, "no database of Izzy's"),
        (no_database, "no backup of Izzy's"),
        (newer, "made by another version"),
    ],
)
def test_what_is_no_whole_backup_is_refused_and_nothing_changes(
    backup: Path, restore: Restore, target: Path, damage: Callable[[Path], None], message: str
) -> None:
    damage(backup)
    before = everything(target)
    with pytest.raises(BackupFailed, match=message):
        restore(backup)
    assert everything(target) == before
    assert [path.name for path in target.iterdir() if path.is_dir()] == []


def test_nothing_is_put_in_place_of_an_izzy_that_runs(
    backup: Path, restore: Restore, target: Path
) -> None:
    held = data_directory_hold(target)
    with pytest.raises(Running, match="Stop it first"):
        restore(backup, force=True)
    assert "izzy.sqlite3" not in everything(target)
    assert held is not None
    held.close()
    restore(backup)


COMMANDS = [
    "backup",
    "changepassword",
    "check_integrity",
    "extract",
    "import_memories",
    "mcp",
    "reindex",
    "retest",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_begins_while_a_backup_is_put_there(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    """Its writes would lie in the database that was put aside."""
    monkeypatch.setattr("sys.argv", ["manage.py", command])
    with data_directory_alone(data), pytest.raises(SystemExit) as end:
        manage.main()
    assert end.value.code == 2
    assert "A backup is just being put" in capsys.readouterr().err


def test_nothing_is_put_in_place_of_what_a_command_writes_to(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []

    def look(self: object, *args: object, **options: object) -> None:
        with pytest.raises(Running), data_directory_alone(data):
            pass
        held.append(True)

    monkeypatch.setattr("apps.memory.management.commands.extract.Command.handle", look)
    monkeypatch.setattr("sys.argv", ["manage.py", "extract", "--skip-checks"])
    manage.main()
    assert held == [True]


def test_a_database_that_a_process_writes_to_is_not_moved(data: Path) -> None:
    held = data_directory_hold(data)
    assert held is not None
    with pytest.raises(CommandError, match="Stop it first"):
        call_command("move_database", "postgresql://izzy@127.0.0.1:1/izzy")
    held.close()


def test_none_starts_while_a_backup_is_put_there(target: Path) -> None:
    with data_directory_alone(target), pytest.raises(CommandError, match="Start again"):
        data_directory_hold(target)
    held = data_directory_hold(target)
    assert held is not None
    held.close()
