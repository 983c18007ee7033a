"""Where nothing can be written (a full disk, lost permissions): what is read still comes, and the rest is told in words."""

import errno
import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.files.storage import FileSystemStorage
from django.db import OperationalError, connection
from django.test import Client
from psycopg.errors import DiskFull

from apps.accounts.models import User
from apps.chat.turns import services
from apps.core.jobs.worker import Background
from apps.memory.models import Memory
from tests.chat.client import connected

pytestmark = pytest.mark.django_db(transaction=True)

NOTE = {"content": "The boiler was serviced in May"}


def writable(yes: bool) -> None:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"PRAGMA query_only={'OFF' if yes else 'ON'}")
        else:  # as at a server that follows another
            cursor.execute(f"SET default_transaction_read_only TO {'off' if yes else 'on'}")


def test_programs_read_on_and_are_told_why_nothing_is_saved(
    alice: User, api: Callable[..., Client]
) -> None:
    client = api(alice)
    assert client.post("/api/v1/memories/", NOTE, content_type="application/json").status_code == 201
    client = api(alice)  # with a token whose first use is to be noted
    writable(False)
    try:
        read = client.get("/api/v1/memories/")
        refused = client.post("/api/v1/memories/", NOTE, content_type="application/json")
    finally:
        writable(True)
    assert (read.status_code, read.json()["count"]) == (200, 1)
    assert refused.status_code == 503
    assert refused.json()["code"] == "database_unavailable"
    said = "cannot be written" if connection.vendor == "sqlite" else "takes no writes"
    assert said in refused.json()["message"]
    assert client.post("/api/v1/memories/", NOTE, content_type="application/json").status_code == 201
    assert Memory.objects.for_user(alice).count() == 2


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> OSError:
    """A disk on which a file can be made, but nothing written into it."""
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def save(self: FileSystemStorage, name: str, content: Any) -> str:
        Path(self.path(name)).parent.mkdir(parents=True, exist_ok=True)
        Path(self.path(name)).touch()
        raise error

    def fsync(number: int) -> None:
        raise error

    monkeypatch.setattr(FileSystemStorage, "_save", save)
    monkeypatch.setattr(os, "fsync", fsync)
    return error


def _files() -> Iterator[Path]:
    """Those of attachments and imports, also what other tests of this process have left."""
    for folder in ("attachments", "imports"):
        yield from (
            each for each in (Path(settings.IZZY_DATA_DIR) / folder).rglob("*") if each.is_file()
        )


def test_a_file_that_has_no_room_is_refused_with_the_reason_and_leaves_nothing(
    alice: User, api: Callable[..., Client], full: OSError
) -> None:
    program, before = api(alice), set(_files())
    tool = {
        "name": "halver",
        "description": "Halves",
        "input_schema": {"type": "object"},
        "files": {"main.py": "def run(args): return ''"},
    }
    answers = [
        program.post("/api/v1/attachments/", {"file": io.BytesIO(b"A list of things")}),
        program.post("/api/v1/import/", {"file": io.BytesIO(b"A list of things")}),
        program.post("/api/v1/capabilities/", tool, content_type="application/json"),
    ]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "database_unavailable")
        assert answer.json()["message"].startswith("The disk is full.")
    assert set(_files()) == before


def test_a_page_says_so_too(alice: User, client: Client, full: OSError) -> None:
    client.force_login(alice)
    client.raise_request_exception = False
    answer = client.post("/settings/data/", {"file": io.BytesIO(b"A list of things")})
    assert answer.status_code == 503
    assert "The disk is full." in answer.content.decode()


@pytest.fixture
def no_room() -> OperationalError:
    """The database's error, as either engine gives it."""
    error = OperationalError("database or disk is full")
    if connection.vendor == "postgresql":
        error.__cause__ = DiskFull()
    return error


async def test_the_chat_says_so_too(
    alice: User, monkeypatch: pytest.MonkeyPatch, no_room: OperationalError
) -> None:
    def refused(**given: Any) -> None:
        raise no_room

    monkeypatch.setattr(services, "message_send", refused)
    async with connected(alice) as page:
        answer = await page.say("Hello")
    assert (answer["code"], answer["type"]) == ("database_unavailable", "error")
    assert "disk is full." in answer["message"]


def test_the_workers_log_has_a_line_and_no_traceback_each_time(
    caplog: pytest.LogCaptureFixture, no_room: OperationalError
) -> None:
    def work() -> None:
        raise no_room

    background = Background("some work", work)
    background._run()
    (line,) = [record for record in caplog.records if "some work failed" in record.message]
    assert "disk is full." in line.message
    assert line.exc_info is None
