"""The files of attachments in the storage that all hosts share: as they were brought, and of images the copy that is shown."""

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing
from functools import partial
from uuid import UUID

from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.db import transaction

from apps.chat.models import Attachment
from apps.core.errors import NotFound

logger = logging.getLogger(__name__)
ROOT = "attachments"
SHOWN = ".shown"


def path_of(user_id: UUID, key: UUID, *, shown: bool = False) -> str:
    return f"{ROOT}/{user_id}/{key}{SHOWN if shown else ''}"


def file_write(row: Attachment, body: bytes, picture: bytes) -> None:
    """Before the row is stored. Raises OSError where the storage cannot take it."""
    storage = storages["shared"]
    storage.save(path_of(row.user_id, row.pk), ContentFile(body))
    if picture:
        storage.save(path_of(row.user_id, row.pk, shown=True), ContentFile(picture))


def file_read(row: Attachment, *, shown: bool = False) -> bytes:
    """The file, or with `shown` an image's copy. NotFound where it is gone; Unavailable from a store that does not answer."""
    try:
        with closing(storages["shared"].open(path_of(row.user_id, row.pk, shown=shown), "rb")) as file:
            return bytes(file.read())
    except FileNotFoundError:
        raise NotFound(f"The file of “{row.name}” is gone.") from None


def files_remove(user_id: UUID, keys: Iterable[UUID]) -> None:
    """`check_integrity` finds files that cannot be removed now."""
    storage = storages["shared"]
    for key in keys:
        for shown in (False, True):
            path = path_of(user_id, key, shown=shown)
            try:
                storage.delete(path)
            except OSError as error:
                logger.warning("a file of an attachment stays: %s", error)


def files_go(user_id: UUID, keys: Iterable[UUID]) -> None:
    """The same, once the transaction that removes their rows is over."""
    transaction.on_commit(partial(files_remove, user_id, list(keys)))


def files_named() -> Iterator[tuple[str, str]]:
    """For backups: all files of attachments."""
    rows = Attachment.objects.unscoped().order_by().values_list("user_id", "pk", "sha256", "shown_type")
    for user_id, key, sha256, shown_type in rows.iterator():
        yield path_of(user_id, key), sha256
        if shown_type:
            yield path_of(user_id, key, shown=True), ""


def files_there() -> Iterator[tuple[str, str]]:
    """(user's folder, name) of each file that lies in the storage."""
    storage = storages["shared"]
    try:
        folders, _ = storage.listdir(ROOT)
    except (FileNotFoundError, NotADirectoryError):
        return
    for folder in folders:
        yield from ((folder, name) for name in storage.listdir(f"{ROOT}/{folder}")[1])
