"""Checks of attachments: rows have their files, and files their rows."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from django.core.files.storage import storages
from django.db import transaction
from django.utils import timezone

from apps.chat.attachments.files import ROOT, SHOWN, files_there, path_of
from apps.chat.models import Attachment
from apps.core.db.writing import writing_for
from apps.core.integrity import Check, Finding, integrity_checks, row_name

AT_ONCE = 500
NEW_FOR = timedelta(hours=1)


def _rows(user_id: UUID | None) -> Iterator[Finding]:
    """Rows whose file is not there, or not as large as it was."""
    rows = Attachment.objects.for_user(user_id) if user_id else Attachment.objects.unscoped()
    storage = storages["shared"]
    columns = ("pk", "user_id", "size", "shown_type")
    for key, owner, size, shown_type in rows.order_by("pk").values_list(*columns).iterator(AT_ONCE):
        path = path_of(owner, key)
        there = storage.exists(path) and storage.size(path) == size
        if there and (not shown_type or storage.exists(path_of(owner, key, shown=True))):
            continue
        yield Finding(
            about=row_name(Attachment, key),
            message="Its file is gone, or was changed: the model and its owner cannot be shown it.",
            advice="Restore the folder attachments from a backup, or delete the attachment in its conversation.",
            user_id=owner,
        )


def _files(user_id: UUID | None) -> Iterator[Finding]:
    """Files that no row names, an hour after they were written: until then the row may be about to be stored."""
    if user_id is not None:
        return
    storage, now = storages["shared"], timezone.now()
    for folder, name in files_there():
        if _is_named(folder, name):
            continue
        if now - storage.get_modified_time(f"{ROOT}/{folder}/{name}") > NEW_FOR:
            yield Finding(
                about=f"file {ROOT}/{folder}/{name}",
                message="No attachment belongs to it.",
                repair="Removes it.",
                subject=(folder, name),
            )


def _is_named(folder: str, name: str) -> bool:
    with suppress(ValueError):
        owner, key = UUID(folder), UUID(name.removesuffix(SHOWN))
        rows = Attachment.objects.for_user(owner).filter(pk=key)
        return rows.exclude(shown_type="").exists() if name.endswith(SHOWN) else rows.exists()
    return False


def _files_fix(findings: Sequence[Finding]) -> None:
    for finding in findings:
        folder, name = finding.subject
        owner = None
        with suppress(ValueError):
            owner = UUID(folder)
        with writing_for(owner), transaction.atomic():
            if not _is_named(folder, name):
                storages["shared"].delete(f"{ROOT}/{folder}/{name}")


integrity_checks.register("attachments: files", Check("Attachments have their files", _rows))
integrity_checks.register(
    "attachments: strays", Check("Files belong to attachments", _files, _files_fix)
)
