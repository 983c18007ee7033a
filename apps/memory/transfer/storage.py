"""The files of imports, in the folder `imports` of the data directory until they have ended.

Where hosts share a store of files (IZZY_FILES_URL), the store has a copy: the host whose worker takes a file in fetches it from
there.
"""

import fcntl
import logging
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from uuid import UUID

from django.conf import settings
from django.core.files import File
from django.core.files.storage import storages
from django.db import transaction

from apps.core.errors import InvalidInput, TooLarge
from apps.core.private import private
from apps.memory.models import OPEN_IMPORTS, Import

logger = logging.getLogger(__name__)

LOST_AFTER = 24 * 3600.0
"""Seconds after which a file without an import is one that a crash left."""


def imports_folder() -> Path:
    """The folder, which only the server's own user reads."""
    folder = Path(settings.IZZY_DATA_DIR) / "imports"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def import_path(key: UUID) -> Path:
    """The file on this machine, fetched where another one has taken it in. There is none at the path where it is gone.

    Raises OSError where the store does not answer.
    """
    path = imports_folder() / str(key)
    if settings.IZZY_FILES_URL and not path.exists():
        part = path.with_name(f".{key}.{secrets.token_hex(4)}")
        with suppress(FileNotFoundError), closing(storages["shared"].open(_stored(key), "rb")) as source:
            try:
                with open(part, "xb", opener=private) as target:
                    fcntl.flock(target, fcntl.LOCK_SH)
                    shutil.copyfileobj(source, target)
                part.rename(path)
            finally:
                part.unlink(missing_ok=True)
    return path


def _stored(key: UUID) -> str:
    return f"imports/{key}"


def upload_exists(key: UUID) -> bool:
    """Whether the file is here or in the store. Raises OSError where the store does not answer."""
    here = (imports_folder() / str(key)).is_file()
    return here or (bool(settings.IZZY_FILES_URL) and storages["shared"].exists(_stored(key)))


@contextmanager
def upload_write(key: UUID, chunks: Iterable[bytes], *, limit: int | None) -> Iterator[int]:
    """Keeps an upload for its import; yields its bytes. TooLarge for more than the limit, InvalidInput for an empty one.

    The file is held until the end of the block, by when its import is to be stored; where that fails, it goes.
    """
    size, path = 0, imports_folder() / str(key)
    try:
        with open(path, "wb", opener=private) as file:
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
            if settings.IZZY_FILES_URL:
                with path.open("rb") as source:
                    storages["shared"].save(_stored(key), File(source))
            yield size
    except BaseException:
        upload_remove(key)
        raise


def uploads_named() -> Iterator[tuple[str, str]]:
    """For backups: the files of imports that have not ended."""
    keys = Import.objects.unscoped().filter(state__in=OPEN_IMPORTS).order_by()
    for key in keys.values_list("pk", flat=True).iterator():
        yield _stored(key), ""


def uploads() -> Iterator[Path]:
    """All files that lie here; what lies in the store alone is `uploads_prune`'s."""
    return imports_folder().iterdir()


def is_held(path: Path) -> bool:
    """Whether somebody is just about to store the import of the file, or fetches it, or the file is gone."""
    try:
        with path.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    return False


def upload_remove(key: UUID) -> None:
    """Removes it here and from the store; another host's copy goes with its next sweep."""
    (imports_folder() / str(key)).unlink(missing_ok=True)
    if settings.IZZY_FILES_URL:
        try:
            storages["shared"].delete(_stored(key))
        except OSError as error:
            logger.warning("the file of an import stays in the store until a sweep: %s", error)


def uploads_prune() -> int:
    """Sweep: removes files that belong to no import that is under way, here and in the store; returns how many."""
    gone = 0
    for path in uploads():
        with suppress(OSError):
            if _is_lost(path.name, path.stat().st_mtime):
                path.unlink()
                gone += 1
    if settings.IZZY_FILES_URL:
        store = storages["shared"]
        with suppress(OSError):  # away; the next sweep looks again
            for name in store.listdir("imports")[1]:
                if _is_lost(name, store.get_modified_time(f"imports/{name}").timestamp()):
                    store.delete(f"imports/{name}")
                    gone += 1
    return gone


def _is_lost(name: str, modified: float) -> bool:
    """Whether it is old and no open import's; one that was being fetched begins with a dot."""
    if time.time() - modified <= LOST_AFTER:
        return False
    try:
        key = UUID(name.removeprefix(".").partition(".")[0])
    except ValueError:
        return False
    return (
        name.startswith(".")
        or not Import.objects.unscoped().filter(pk=key, state__in=OPEN_IMPORTS).exists()
    )


def user_uploads_forget(user_id: UUID) -> int:
    """Before an account goes: removes its imports, and their files once it is gone; returns how many imports there were."""
    keys = list(Import.objects.for_user(user_id).values_list("pk", flat=True))
    for key in keys:
        transaction.on_commit(partial(upload_remove, key))
    Import.objects.for_user(user_id).delete()
    return len(keys)
