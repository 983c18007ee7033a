import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from django.core.files.storage import FileSystemStorage
from django.core.management import call_command
from pytest_django import DjangoDbBlocker, Settings

Rows = Callable[..., list[tuple[Any, ...]]]


class Watched(FileSystemStorage):
    """A folder; `opened` hears of each file before it is read."""

    opened: Callable[[str], object] | None = None

    def open(self, name: str, mode: str = "rb") -> Any:
        if self.opened is not None:
            self.opened(name)
        return super().open(name, mode)


@pytest.fixture(autouse=True)
def _other_databases(django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Copies are opened as databases of their own, which Django's tests forbid."""
    with django_db_blocker.unblock():
        yield


@pytest.fixture
def data(tmp_path: Path, settings: Settings) -> Path:
    """The data directory, with its keys and what is no part of a backup; the rows lie elsewhere."""
    folder = tmp_path / "data"
    for cache in ("sandbox", "metrics"):
        (folder / cache).mkdir(parents=True)
        (folder / cache / "cached").write_text("again")
    for key in ("secret_key", "secrets_key"):
        (folder / key).write_text(key)
        (folder / key).chmod(0o600)
    settings.IZZY_DATA_DIR = folder
    settings.STORAGES = settings.STORAGES | {
        "shared": {
            "BACKEND": "tests.core.backups.conftest.Watched",
            "OPTIONS": {"location": folder},
        }
    }
    return folder


@pytest.fixture
def back_up(data: Path, tmp_path: Path) -> Callable[..., Path]:
    """`back_up("--without-keys")`: a new backup."""

    def make(*options: str) -> Path:
        folder = tmp_path / f"backup{len(list(tmp_path.iterdir()))}"
        call_command("backup", str(folder), *options)
        return folder

    return make


@pytest.fixture
def rows() -> Rows:
    """`rows(folder, "SELECT …")` from the database in a folder."""

    def find(folder: Path, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(folder / "izzy.sqlite3")) as database:
            return database.execute(query).fetchall()

    return find
