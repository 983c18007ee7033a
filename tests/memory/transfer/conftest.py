"""Shared by the tests of taking out and bringing in: an account with something of everything, and how a file goes in."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import User
from apps.memory.models import Import
from apps.memory.transfer.exporting import export_lines
from apps.memory.transfer.jobs import import_create, import_get
from apps.memory.transfer.running import imports_run
from tests.site.belongings import make_belongings

from .reading import Uploads

Row = dict[str, Any]
TakeIn = Callable[..., Import]


def exported(user: User) -> bytes:
    """The user's export, whole."""
    return b"".join(export_lines(user.pk))


def rows_in(data: bytes, *kinds: str) -> list[Row]:
    """The records of an export, those of some kinds alone where these are named."""
    rows = [json.loads(line) for line in data.splitlines()]
    return [row for row in rows if not kinds or row["type"] in kinds]


def as_file(rows: Iterable[Row]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


@pytest.fixture
def take_in() -> TakeIn:
    """`take_in(bob, data, own=True)`: an import as the worker runs it, to its end."""

    def run(user: User, data: bytes, **options: Any) -> Import:
        job = import_create(user_id=user.pk, chunks=[data], **options)
        imports_run()
        return import_get(user.pk, job.pk)

    return run


def counts(job: Import, outcome: str = "taken") -> dict[str, int]:
    """By kind, how many records were taken (merged, skipped, wrong)."""
    return {row["kind"]: row[outcome] for row in job.report["kinds"] if row[outcome]}


@pytest.fixture
def full(alice: User) -> User:
    """Alice, who has something of everything."""
    make_belongings(alice)
    return alice


@pytest.fixture
def upload(tmp_path: Path) -> Uploads:
    return Uploads(tmp_path)
