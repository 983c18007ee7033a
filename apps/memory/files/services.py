"""Writes of the file memory. Every change keeps the state it replaces and brings search in step at once.

All take paths as they come and raise `apps.core.errors`: InvalidInput and TooLarge for a path or text that cannot be,
NotFound and Conflict with the sentences of the memory tool's documentation.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.db.models import Max
from django.utils import timezone

from apps.core.db.writing import precompute
from apps.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from apps.memory.models import MAX_PATH_CHARS, FileAction, MemoryFile, MemoryFileRevision, Trust
from apps.memory.notes.revisions import BY_USER, MAX_REASON_CHARS, Change
from apps.memory.trust import least_trust
from apps.search.documents import Document, Source
from apps.search.services import documents_index, documents_prepare, documents_remove

from .selectors import file_at, file_get, files_in, is_directory
from .texts import (
    ROOT,
    check_size,
    clean_file_text,
    clean_path,
    inserted,
    inside,
    parents,
    replaced,
)

MAX_FILES = 5_000
"""Files of one user."""
MAX_FILE_REVISIONS = 200
"""Versions kept of one file, which may be long; the oldest go first."""
BATCH = 200


@dataclass(frozen=True, slots=True)
class Replacement:
    """A file after `file_replace`: the change begins at `line` (from 0) and has `count` lines."""

    file: MemoryFile
    line: int
    count: int


@transaction.atomic
def file_write(
    *, user_id: UUID, path: object, text: object, new: bool = False, change: Change = BY_USER
) -> MemoryFile:
    """Create a file, its directories included, or give an existing one another content, which with `new` is a Conflict."""
    place, content = clean_path(path), clean_file_text(text, field="file_text")
    owner_lock(user_id)
    file = file_at(user_id, place, lock=True)
    if file is not None and new:
        raise Conflict(f"Error: File {place} already exists", code="exists", field="path")
    if file is not None:
        return _edit(file, content, change, trust=change.trust)
    check_free(user_id, place)
    check_room(user_id)
    size = len(content.encode())
    file = MemoryFile(
        user_id=user_id, path=place, content=content, size=size, origin=change.actor, trust=change.trust
    )
    file.save(force_insert=True)
    files_index(user_id, [file])
    return file


@transaction.atomic
def file_replace(
    *, user_id: UUID, path: object, old: object, new: object, change: Change = BY_USER
) -> Replacement:
    """Replace the one place where `old` stands in a file; an empty `new` deletes it."""
    place = clean_path(path)
    wanted, other = clean_file_text(old, field="old_str"), clean_file_text(new, field="new_str")
    if not wanted:
        raise InvalidInput("old_str must not be empty.", code="empty_text", field="old_str")
    owner_lock(user_id)
    file = file_at(user_id, place, lock=True)
    if file is None:
        raise NotFound(f"Error: The path {place} does not exist. Please provide a valid path.")
    content, line = replaced(place, file.content, wanted, other)
    check_size(content, field="new_str")
    return Replacement(_edit(file, content, change), line, other.count("\n") + 1)


@transaction.atomic
def file_insert(*, user_id: UUID, path: object, line: int, text: object, change: Change) -> MemoryFile:
    """Insert lines after line `line` of a file; 0 is the top."""
    place, addition = clean_path(path), clean_file_text(text, field="insert_text")
    owner_lock(user_id)
    file = file_at(user_id, place, lock=True)
    if file is None:
        raise NotFound(f"Error: The path {place} does not exist")
    content = inserted(file.content, line, addition)
    check_size(content, field="insert_text")
    return _edit(file, content, change)


@transaction.atomic
def file_delete(*, user_id: UUID, path: object, change: Change = BY_USER) -> list[MemoryFile]:
    """Delete a file, or a directory with all in it: out of sight and search at once, restorable for 30 days."""
    place = clean_path(path)
    if place == ROOT:
        raise InvalidInput(f"Cannot delete the {ROOT} directory itself", code="is_root", field="path")
    files = _locked(user_id, place)
    file_revisions_keep(files, action=FileAction.DELETED, change=change)
    now = timezone.now()
    for file in files:
        file.deleted_at = file.updated_at = now
    MemoryFile.everything.bulk_update(files, ["deleted_at", "updated_at"], batch_size=BATCH)
    files_index(user_id, files)
    return files


def file_rename(
    *, user_id: UUID, old_path: object, new_path: object, change: Change = BY_USER
) -> list[MemoryFile]:
    """Rename or move a file, or a directory with all in it. Nothing is overwritten."""
    old, new = clean_path(old_path, field="old_path"), clean_path(new_path, field="new_path")
    if old == ROOT:
        raise InvalidInput(
            f"Cannot rename the {ROOT} directory itself", code="is_root", field="old_path"
        )
    with precompute():
        # The words of a path count as text: reading a whole directory anew would hold up all other writers.
        present = _at_or_in(user_id, old)
        texts = [file_text(new + file.path[len(old) :], file.content) for file in present]
        documents_prepare(user_id=user_id, texts=texts)
        return _rename(user_id, old, new, change)


@transaction.atomic
def _rename(user_id: UUID, old: str, new: str, change: Change) -> list[MemoryFile]:
    files = _locked(user_id, old)
    if new == old or file_at(user_id, new) is not None or is_directory(user_id, new):
        raise Conflict(f"Error: The destination {new} already exists", code="exists", field="new_path")
    if new.startswith(inside(old)):
        raise Conflict(f"Error: {old} cannot be moved into itself", code="into_itself", field="new_path")
    check_free(user_id, new, field="new_path")
    file_revisions_keep(files, action=FileAction.RENAMED, change=change)
    now = timezone.now()
    for file in files:
        path = new + file.path[len(old) :]
        if len(path) > MAX_PATH_CHARS:
            message = f"Error: The path {path[:100]}… would be longer than {MAX_PATH_CHARS} characters."
            raise TooLarge(message, field="new_path", limit=MAX_PATH_CHARS)
        file.path, file.updated_at = clean_path(path, field="new_path"), now
        file.trust = Trust.UNTRUSTED if change.trust == Trust.UNTRUSTED else file.trust
    MemoryFile.everything.bulk_update(files, ["path", "trust", "updated_at"], batch_size=BATCH)
    files_index(user_id, files)
    return files


@transaction.atomic
def file_update(
    *, user_id: UUID, file_id: UUID, path: object = None, text: object = None, change: Change = BY_USER
) -> MemoryFile:
    """Give a file another path and another content at once, each unless it is None. A new path that is taken is a Conflict."""
    owner_lock(user_id)
    file = MemoryFile.objects.for_user(user_id).select_for_update().filter(pk=file_id).first()
    if file is None:
        raise NotFound("There is no file with this id.")
    place = file.path if path is None else clean_path(path)
    if place != file.path:
        file = file_rename(user_id=user_id, old_path=file.path, new_path=place, change=change)[0]
    if text is None:
        return file
    return _edit(file, clean_file_text(text, field="file_text"), change, trust=change.trust)


def owner_lock(user_id: UUID) -> None:
    """Let one change of a user's tree come after the other: a path is free or not for the whole transaction."""
    get_user_model().objects.select_for_update().values_list("pk").get(pk=user_id)


def check_free(
    user_id: UUID,
    path: str,
    *,
    field: str = "path",
    moving: UUID | None = None,
    coming: Collection[str] = (),
) -> None:
    """Raises Conflict where a file cannot be: at a directory, or beneath a file. The one `moving` does not count; files that are
    `coming` at these paths do."""
    within = any(other.startswith(inside(path)) for other in coming)
    if within or is_directory(user_id, path, without=moving):
        message = f"Error: {path} is a directory. Choose the path of a file in it."
        raise Conflict(message, code="is_directory", field=field)
    above = MemoryFile.objects.for_user(user_id).filter(path__in=parents(path))
    files = [file for key, file in above.values_list("pk", "path") if key != moving]
    files += [file for file in parents(path) if file in coming]
    if files:
        message = f"Error: {files[0]} is a file, so nothing can lie in it."
        raise Conflict(message, code="not_a_directory", field=field)


def check_room(user_id: UUID) -> None:
    """Raises Conflict where one more would be more than MAX_FILES files."""
    if MemoryFile.objects.for_user(user_id).count() >= MAX_FILES:
        message = f"Error: There are {MAX_FILES:,} files already. Delete some, or join several into one."
        raise Conflict(message, code="too_many_files", limit=MAX_FILES)


def _edit(file: MemoryFile, content: str, change: Change, *, trust: Trust | None = None) -> MemoryFile:
    """Another content. `trust` is that of the whole of it; without it, of a part: the least of both counts."""
    if content == file.content:
        return file
    trust = trust or least_trust(file.trust, change.trust)
    return _put(file, (file.path, content, trust), FileAction.EDITED, change)


def _put(
    file: MemoryFile, state: tuple[str, str, str], action: FileAction, change: Change
) -> MemoryFile:
    """Give a file this path, content and trust; a deleted one is there again."""
    file_revisions_keep([file], action=action, change=change)
    file.path, file.content, file.trust = state
    file.size, file.deleted_at, file.updated_at = len(file.content.encode()), None, timezone.now()
    file.save(update_fields=["path", "content", "size", "trust", "deleted_at", "updated_at"])
    files_index(file.user_id, [file])
    return file


def _at_or_in(user_id: UUID, path: str, *, lock: bool = False) -> list[MemoryFile]:
    """The file with this path, or all files in the directory."""
    file = file_at(user_id, path, lock=lock)
    files = files_in(user_id, path)
    return [file] if file is not None else list(files.select_for_update() if lock else files)


def _locked(user_id: UUID, path: str) -> list[MemoryFile]:
    """The same for a change; NotFound where there is neither."""
    owner_lock(user_id)
    files = _at_or_in(user_id, path, lock=True)
    if not files:
        raise NotFound(f"Error: The path {path} does not exist")
    return files


@transaction.atomic
def file_undo(*, user_id: UUID, file_id: UUID, version: int, change: Change = BY_USER) -> MemoryFile:
    """Bring a file back to the content and path it had in `version`; this is itself a change with a revision.

    Raises NotFound where that version is not kept, Conflict where its path is taken by now.
    """
    owner_lock(user_id)
    file = file_get(user_id, file_id, lock=True)
    revision = (
        MemoryFileRevision.objects.for_user(user_id).filter(file_id=file_id, version=version).first()
    )
    if revision is None:
        raise NotFound(f"This file has no earlier version {version}.", code="unknown_version")
    if (file.path, file.content, file.deleted_at) == (revision.path, revision.content, None):
        return file
    return _bring_back(
        file, (revision.path, revision.content, revision.trust), FileAction.UNDONE, change
    )


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
    """Give a file the path, content and trust of a former state, where its path is free."""
    path = state[0]
    if file.deleted_at is not None:
        check_room(file.user_id)
    if file.deleted_at is not None or file.path != path:
        if file_at(file.user_id, path) is not None:
            message = f"There is another file at {path} now. Rename or delete that one first."
            raise Conflict(message, code="exists", field="path")
        check_free(file.user_id, path, moving=file.pk)
    return _put(file, state, action, change)


@transaction.atomic
def file_erase(*, user_id: UUID, file_id: UUID) -> None:
    """Remove a file for good, with its passages and revisions. There is no way back."""
    documents_remove(user_id=user_id, source=Source.FILE, source_ids=[file_id])
    MemoryFile.objects.with_deleted(user_id).filter(pk=file_id).delete()


@transaction.atomic
def user_files_forget(user_id: UUID) -> int:
    """Erase all files of a user, before the account goes; returns how many rows went."""
    revisions, _ = MemoryFileRevision.objects.for_user(user_id).delete()
    files, _ = MemoryFile.objects.with_deleted(user_id).delete()
    return revisions + files


def file_revisions_keep(files: Sequence[MemoryFile], *, action: FileAction, change: Change) -> None:
    """Store what files of one user are, before `action` changes them."""
    kept = MemoryFileRevision.objects.owned_by(files[0].user_id)
    of_files = kept.filter(file_id__in=[file.pk for file in files]).order_by()
    newest = dict(of_files.values_list("file_id").annotate(version=Max("version")))
    made = [
        MemoryFileRevision(
            user_id=file.user_id,
            file_id=file.pk,
            version=newest.get(file.pk, 0) + 1,
            path=file.path,
            content=file.content,
            trust=file.trust,
            action=action,
            actor=change.actor,
            reason=change.reason[:MAX_REASON_CHARS],
        )
        for file in files
    ]
    MemoryFileRevision.objects.bulk_create(made, batch_size=BATCH)
    for row in made:
        if row.version > MAX_FILE_REVISIONS:
            kept.filter(file_id=row.file_id, version__lte=row.version - MAX_FILE_REVISIONS).delete()


def files_index(user_id: UUID, files: Sequence[MemoryFile]) -> None:
    """Bring the search index in step with the files' present state, inside the caller's transaction."""
    shown = file_documents(files)
    hidden = [file.pk for file in files if file.deleted_at is not None]
    if shown:
        documents_index(user_id=user_id, documents=shown)
    if hidden:
        documents_remove(user_id=user_id, source=Source.FILE, source_ids=hidden)


def file_documents(files: Sequence[MemoryFile]) -> list[Document]:
    """Files as search has them; a deleted one is not found."""
    return [
        Document(
            source=Source.FILE,
            source_id=file.pk,
            text=file_text(file.path, file.content),
            happened_at=file.updated_at,
            external_id=file.path,
        )
        for file in files
        if file.deleted_at is None
    ]


def file_text(path: str, content: str) -> str:
    """Returns what is found of a file: the words of its path, and its content."""
    return f"{path}\n\n{content}"
