"""Backups: a folder with the database as of one moment, the files that its rows name, the keys, and a list of what is in it.

Whatever the engine, the rows come as a file of SQLite's.
"""

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from django.db import DatabaseError
from django.utils import timezone

from apps.core.models import InstanceState
from apps.core.registries import Registry

DATABASE = "izzy.sqlite3"
MANIFEST = "backup.json"
KEYS = ("secret_key", "secrets_key")
CACHES = ("sandbox", "metrics")
"""Folders of the data directory that Izzy makes again by itself."""
OF_THE_DISK = "lost+found"
"""The folder in a data directory that is a disk of its own (ext4): root's, and none of Izzy's."""


class BackupFailed(Exception):
    """A problem, in a sentence for the person who runs Izzy."""


NamedFiles = Callable[[], Iterable[tuple[str, str]]]
"""fn() -> (path, SHA-256 or "" where no row knows it) of each file that belongs to a row; the path begins with the name of the
folder. They are in the storage `shared` before their row is there, never change, and go once their row has gone."""

named_files: Registry[NamedFiles] = Registry()
"""A folder (`capabilities`) -> its files. Of such a folder a backup holds exactly what the rows name that it holds."""


def checksum(path: Path) -> str:
    """SHA-256 of a file, "" where there is none."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return ""


MADE = "backup"
"""InstanceState: when the newest backup was made, in ISO 8601."""


def backup_made() -> None:
    """Notes that a backup was made; one that cannot be noted is a backup all the same."""
    with suppress(DatabaseError):
        at = timezone.now().isoformat()
        InstanceState.objects.update_or_create(key=MADE, defaults={"value": {"at": at}})


def last_backup() -> datetime | None:
    """When this installation was backed up last, by the command."""
    value = InstanceState.objects.filter(key=MADE).values_list("value", flat=True).first()
    return datetime.fromisoformat(value["at"]) if value else None
