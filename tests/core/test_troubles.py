"""The command line says what is wrong with the installation in a sentence, never a traceback."""

import os
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from pytest_django import Settings

from apps.core import health
from apps.core.db.troubles import explain, stale_message, stale_tables
from apps.core.health import check_database, unknown_settings
from izzysite.management.commands import serve
from izzysite.management.commands.serve import update_database
from tests.peers.ports import free_port
from tests.peers.prepared import prepared
from tests.site.test_documented import settings_read
from tests.waiting import PATIENCE

SECRET = "hunter2hunter2"


def manage(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`manage.py` as an operator runs it, with a data directory of its own."""
    return manage_into(subprocess.PIPE, folder, *arguments, **environment)


def manage_into(
    output: int, folder: Path, *arguments: str, **environment: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=settings.BASE_DIR,
        env=os.environ
        | {"DJANGO_SETTINGS_MODULE": "izzysite.settings", "IZZY_DATA_DIR": str(folder), "COLUMNS": "300"}
        | environment,
        stdout=output,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def told(done: subprocess.CompletedProcess[str], *parts: str) -> None:
    said = " ".join((done.stdout + done.stderr).split())
    assert done.returncode == 1, said
    assert "Traceback" not in said
    for part in parts:
        assert part in said


def test_whoever_reads_the_beginning_alone_sees_no_error(tmp_path: Path) -> None:
    """As `| head` does."""
    reader, writer = os.pipe()
    os.close(reader)
    done = manage_into(writer, tmp_path, "help")
    os.close(writer)
    assert (done.returncode, done.stderr) == (1, "")


def test_what_breaks_otherwise_is_told(tmp_path: Path) -> None:
    done = manage(tmp_path, "shell", "-c", "raise BrokenPipeError(32, 'the sandbox has gone')")
    assert done.returncode == 1
    assert "the sandbox has gone" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("IZZY_PORT", "eighty"),
        ("IZZY_SANDBOX", "docker"),
        ("IZZY_PUBLIC_URL", f"https://me:{SECRET}@izzy.example.org/path"),
        ("IZZY_ENV_FILE", "/no/such/file"),
    ],
)
def test_a_setting_that_does_not_fit_is_named(tmp_path: Path, variable: str, value: str) -> None:
    done = manage(tmp_path, "doctor", **{variable: value})
    told(done, "Izzy's settings:", variable)
    assert SECRET not in done.stdout + done.stderr


def test_a_settings_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / "env").write_bytes(b"\xff\xfe\x00I\x00Z\x00Z\x00Y")
    told(manage(tmp_path, "doctor", IZZY_ENV_FILE=str(tmp_path / "env")), str(tmp_path / "env"), "UTF-8")


def test_a_line_that_is_no_setting_is_named_and_not_repeated(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(f"IZZY_PORT=8000\n# a remark\nANTHROPIC_API_KEY {SECRET}\n")
    done = manage(tmp_path, "doctor", IZZY_ENV_FILE=str(tmp_path / "env"))
    told(done, f"{tmp_path / 'env'}, line 3")
    assert SECRET not in done.stdout + done.stderr


def test_a_full_disk_ends_a_command_with_a_sentence(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("The boiler was serviced in May")
    environment = prepared().copy(tmp_path / "data")
    full = "import os; os.fsync = lambda number: exec('raise OSError(28, os.strerror(28))')"
    into = f"from django.core.management import call_command; call_command('import_memories', {str(file)!r}, user='alice')"
    done = manage(tmp_path / "data", "shell", "-v", "0", "-c", f"{full}; {into}", **environment)
    told(done, "The disk is full. Make room where the data directory lies.", "No space left on device")
    assert "cannot be read" not in done.stderr


def test_a_backup_from_a_disk_that_takes_no_writes_says_what_to_do(tmp_path: Path) -> None:
    environment = prepared().copy(tmp_path / "data")
    for beside in ("wal", "shm"):  # as there, SQLite cannot make its files
        (tmp_path / "data" / f"izzy.sqlite3-{beside}").unlink(missing_ok=True)
        (tmp_path / "data" / f"izzy.sqlite3-{beside}").mkdir()
    done = manage(tmp_path / "data", "backup", str(tmp_path / "backup"), **environment)
    told(done, "The database file cannot be opened.", "takes no writes, copy the whole directory")


def test_a_mistyped_setting_is_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in settings_read():
        monkeypatch.setenv(name, "x")
    assert unknown_settings(None) == []
    monkeypatch.setenv("IZZY_PROT", "8000")
    assert [found.msg for found in unknown_settings(None)] == ["IZZY_PROT is no setting of Izzy's."]


def test_a_key_that_is_none_stops_the_start_and_is_not_repeated(tmp_path: Path) -> None:
    for command in ("serve", "doctor"):
        done = manage(tmp_path, command, IZZY_SECRETS_KEY=SECRET)
        told(done, "IZZY_SECRETS_KEY", "base64")
        assert SECRET not in done.stdout + done.stderr


def test_an_empty_key_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "secrets_key").write_text("")
    told(manage(tmp_path, "doctor"), str(tmp_path / "secrets_key"), "is empty")


def test_commands_before_the_first_start_say_how_to_begin(tmp_path: Path) -> None:
    told(manage(tmp_path, "createtoken", "alice"), "not set up yet", "manage.py migrate")


def test_the_database_is_closed_to_others_also_where_another_command_made_it(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.IZZY_DATA_DIR = tmp_path
    file = tmp_path / "izzy.sqlite3"
    monkeypatch.setattr(serve, "database_file", lambda: file)
    monkeypatch.setattr(health, "database_file", lambda: file)
    serve.close_database_file()
    file.touch()
    key = tmp_path / "secrets_key"
    key.touch()
    for one in (file, key):
        one.chmod(0o644)
    tmp_path.chmod(0o755)
    assert [found.id for found in health.open_data_directory(None)] == ["izzy.W005"]
    serve.close_database_file()
    assert [stat.S_IMODE(one.stat().st_mode) for one in (file, key)] == [0o640, 0o640]
    assert health.open_data_directory(None) == []


def test_a_file_that_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "izzy.sqlite3").write_bytes(b"this is no database at all" * 200)
    told(manage(tmp_path, "serve", "--port", "0"), "no database", "backup")
    told(manage(tmp_path, "doctor"), "no database", "backup")


def test_a_database_whose_tables_cannot_be_read_any_more_is_told(tmp_path: Path) -> None:
    environment = prepared().copy(tmp_path) | {"IZZY_PORT": str(free_port())}
    file = tmp_path / "izzy.sqlite3"
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    content = file.read_bytes()
    at = content.index(b'"accounts_user"')
    file.write_bytes(content[:at] + b"\xb9\xb9 \xb9\xb9" + content[at + 5 :])
    for command in ("serve", "doctor", "check_integrity"):
        told(manage(tmp_path, command, **environment), "is damaged", "backup")


@pytest.mark.django_db
def test_a_database_of_an_earlier_checkout_is_noticed_and_not_started_with() -> None:
    assert stale_tables() == []
    assert check_database().ok
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE accounts_preferences DROP COLUMN build_continue")
        cursor.execute("ALTER TABLE core_instancestate ADD COLUMN hue INTEGER NULL")
        cursor.execute("ALTER TABLE accounts_apitoken RENAME COLUMN hint TO clue")
        cursor.execute("DROP TABLE builder_dialoguemessage")
    assert sorted(stale_tables()) == [
        "accounts_apitoken: a column clue too many",
        "accounts_apitoken: no column hint",
        "accounts_preferences: no column build_continue",
        "no table builder_dialoguemessage",
    ]
    result = check_database()
    assert not result.ok
    assert "another version" in result.message
    with pytest.raises(CommandError, match="`export_memories` of the version that made it"):
        update_database()


@pytest.mark.parametrize("command", ["web", "worker"])
def test_no_process_starts_with_a_database_of_another_version(tmp_path: Path, command: str) -> None:
    environment = prepared().copy(tmp_path)
    with closing(sqlite3.connect(tmp_path / "izzy.sqlite3")) as database:
        database.execute("ALTER TABLE accounts_preferences DROP COLUMN build_continue")
        database.commit()
    told(
        manage(tmp_path, command, **environment),
        "another version of Izzy (accounts_preferences: no column build_continue)",
        "`export_memories` of the version that made it",
    )


@pytest.mark.django_db
def test_a_database_of_a_newer_version_is_noticed() -> None:
    assert check_database().ok
    MigrationRecorder(connection).record_applied("core", "9999_of_the_future")
    MigrationRecorder(connection).record_applied("an_app_that_was_given_up", "0001_initial")
    assert stale_message().count("migration") == 1
    assert "core.9999_of_the_future" in stale_message()
    assert not check_database().ok


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        ("CREATE TABLE core_instancestate (a TEXT)", "another version"),
        ("SELECT hue FROM core_instancestate", "another version"),
        ("INSERT INTO core_instancestate (hue) VALUES (1)", "another version"),
        ("SELECT * FROM core_nothing", "not set up"),
        ("SELECT nonsense(", None),
    ],
)
def test_what_the_database_says_is_put_in_an_operators_words(statement: str, meant: str | None) -> None:
    with connection.cursor() as cursor, pytest.raises(DatabaseError) as caught:
        cursor.execute(statement)
    trouble = explain(caught.value)
    assert (trouble.message if trouble else None) == meant or (
        trouble and meant and meant in trouble.message
    )
