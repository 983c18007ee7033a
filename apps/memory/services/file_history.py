"""The way back of files: undo, restore; and their end after 30 days."""

from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.core.errors import Conflict, NotFound
from apps.memory.files.selectors import file_at, file_get
from apps.memory.indexing.files import files_index
from apps.memory.models import FileAction, MemoryFile, MemoryFileRevision
from apps.search.documents import Source
from apps.search.services import documents_remove

from .files import check_free, check_room, owner_lock
from .provenance import BY_USER, Change
from .revisions import file_revisions_keep


@transaction.atomic
def file_undo(*, user_id: UUID, file_id: UUID, version: int, change: Change = BY_USER) -> MemoryFile:
    """Bring a file back to the content and path it had in `version`; this is itself a change with a revision.

    Raises NotFound where that version is not kept, Conflict where its path is taken by now.
    """
    owner_lock(user_id)
    file = file_get(user_id, file_id, lock=True)
    revision = MemoryFileRevision.objects.for_user(user_id).filter(file_id=file_id, version=version).first()
    if revision is None:
        raise NotFound(f"This file has no earlier version {version}.", code="unknown_version")
    if (file.path, file.content, file.deleted_at) == (revision.path, revision.content, None):
        return file
    return _bring_back(file, (revision.path, revision.content, revision.trust), FileAction.UNDONE, change)


@transaction.atomic
def file_restore(*, user_id: UUID, file_id: UUID, change: Change = BY_USER) -> MemoryFile:
    """Bring back a deleted file; one that is there is returned unchanged.

    Raises NotFound for one deleted more than 30 days ago, Conflict where its path is taken by now.
    """
    owner_lock(user_id)
    file = file_get(user_id, file_id, lock=True)
    if file.deleted_at is None:
        return file
    return _bring_back(file, (file.path, file.content, file.trust), FileAction.RESTORED, change)


def _bring_back(
    file: MemoryFile, state: tuple[str, str, str], action: FileAction, change: Change
) -> MemoryFile:
    """Give a file the path, content and trust of a former state."""
    path, content, trust = state
    if file.deleted_at is not None:
        check_room(file.user_id, 1)
    if file.deleted_at is not None or file.path != path:
        if file_at(file.user_id, path) is not None:
            message = f"There is another file at {path} now. Rename or delete that one first."
            raise Conflict(message, code="exists", field="path")
        check_free(file.user_id, path, moving=file.pk)
    file_revisions_keep([file], action=action, change=change)
    file.path, file.content, file.size, file.trust = path, content, len(content.encode()), trust
    file.deleted_at, file.updated_at = None, timezone.now()
    file.save(update_fields=["path", "content", "size", "trust", "deleted_at", "updated_at"])
    files_index(file.user_id, [file])
    return file


@transaction.atomic
def file_erase(*, user_id: UUID, file_id: UUID) -> None:
    """Remove a file for good, with its passages and revisions. There is no way back."""
    documents_remove(user_id=user_id, source=Source.FILE, source_ids=[file_id])
    MemoryFile.objects.with_deleted(user_id).filter(pk=file_id).delete()


@transaction.atomic
def user_files_forget(*, user_id: UUID) -> int:
    """Erase all files of a user, before the account goes; returns how many rows went."""
    revisions, _ = MemoryFileRevision.objects.for_user(user_id).delete()
    files, _ = MemoryFile.objects.with_deleted(user_id).delete()
    return revisions + files
