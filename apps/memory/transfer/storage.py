"""The files of imports, in the folder `imports` of the data directory, until they have ended."""

import fcntl
import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import UUID

from django.conf import settings

from apps.core.errors import InvalidInput, TooLarge
from apps.memory.models import OPEN_IMPORTS, Import

LOST_AFTER = 24 * 3600.0
"""Seconds after which a file without an import is one that a crash left."""


def imports_folder() -> Path:
    """The folder, which only the server's own user reads."""
    folder = Path(settings.IZZY_DATA_DIR) / "imports"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def import_path(key: UUID) -> Path:
    return imports_folder() / str(key)


@contextmanager
def upload_write(key: UUID, chunks: Iterable[bytes], *, limit: int | None) -> Iterator[int]:
    """Keeps an upload for its import; yields its bytes. TooLarge for more than the limit, InvalidInput for an empty one.

    The file is held until the end of the block, by when its import is to be stored; where that fails, it goes.
    """
    size, path = 0, import_path(key)
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            for chunk in chunks:
                size += len(chunk)
                if limit is not None and size > limit:
                    raise TooLarge(
                        f"A file to import has at most {limit:,} bytes.", field="file", limit=limit
                    )
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
            if not size:
                raise InvalidInput("The file is empty.", code="empty_file", field="file")
            yield size
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def uploads() -> Iterator[Path]:
    """All files that lie there."""
    return imports_folder().iterdir()


def is_held(path: Path) -> bool:
    """Whether somebody is just about to store the import of the file, or the file is gone."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def upload_remove(key: UUID) -> None:
    import_path(key).unlink(missing_ok=True)


def uploads_prune() -> int:
    """Sweep: removes files that belong to no import that is under way; returns how many."""
    gone = 0
    for path in uploads():
        with suppress(OSError, ValueError):
            old = time.time() - path.stat().st_mtime > LOST_AFTER
            rows = Import.objects.unscoped().filter(pk=UUID(path.name), state__in=OPEN_IMPORTS)
            if old and not rows.exists():
                path.unlink()
                gone += 1
    return gone


def user_uploads_forget(user_id: UUID) -> int:
    """Before an account goes: removes the files of its imports; returns how many imports there were."""
    keys = list(Import.objects.for_user(user_id).values_list("pk", flat=True))
    for key in keys:
        upload_remove(key)
    Import.objects.for_user(user_id).delete()
    return len(keys)
