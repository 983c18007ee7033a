from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from pytest_django import Settings

from apps.accounts.models import User
from apps.capabilities.sandbox.layers.store import layer_owners, layers_remove
from apps.core.integrity import running
from apps.core.integrity.running import CheckOutcome, examine
from apps.search.backends import postings_held

from .world import World, world_of

Look = Callable[..., list[CheckOutcome]]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in layer_owners():  # what the tests before had installed
        layers_remove(name)
    monkeypatch.setattr(running, "AGAIN_SECONDS", 0.0)


@pytest.fixture
def data(tmp_path: Path, settings: Settings) -> Path:
    """A data directory of the test's own, for what lies beside the rows."""
    settings.IZZY_DATA_DIR = tmp_path
    settings.STORAGES = settings.STORAGES | {
        "shared": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": tmp_path},
        }
    }
    return tmp_path


@pytest.fixture
def _no_leavings(db: None) -> None:
    """Tests that commit leave their stems in SQLite's full text, which no flush of tables empties."""
    if connection.vendor == "sqlite":
        postings_held.empty()


@pytest.fixture
def world(_no_leavings: None, data: Path, alice: User) -> World:
    return world_of(alice)


@pytest.fixture
def look() -> Look:
    """`look(fix=True)`: what is wrong with everything."""

    def find(*, fix: bool = False) -> list[CheckOutcome]:
        return list(examine(fix=fix))

    return find
