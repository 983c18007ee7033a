"""Reads of the file memory."""

from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Substr

from apps.core.errors import NotFound
from apps.memory.models import MemoryFile, MemoryFileRevision, is_gone
from apps.memory.notes.history import Version, versions_kept

from .texts import ROOT, inside


def files_in(user_id: UUID, directory: str = ROOT, *, deleted: bool = False) -> QuerySet[MemoryFile]:
    """The files in a directory and all below it, by path; with `deleted` those that can still be restored instead.

    Case counts, whatever the database thinks of LIKE.
    """
    start = inside(directory)
    objects = MemoryFile.objects
    files = (objects.restorable(user_id) if deleted else objects.for_user(user_id)).order_by("path")
    if directory == ROOT:
        return files
    return files.alias(beginning=Substr("path", 1, len(start))).filter(beginning=start)


def file_at(user_id: UUID, path: str, *, lock: bool = False) -> MemoryFile | None:
    """The file with this (clean) path."""
    files = MemoryFile.objects.for_user(user_id).filter(path=path)
    return (files.select_for_update() if lock else files).first()


def file_get(user_id: UUID, file_id: UUID, *, lock: bool = False) -> MemoryFile:
    """The file with this id, deleted in the last 30 days or not. Raises NotFound, also for somebody else's."""
    files = MemoryFile.objects.with_deleted(user_id).filter(pk=file_id)
    file = (files.select_for_update() if lock else files).first()
    if file is None or is_gone(file.deleted_at):
        raise NotFound("There is no file with this id.")
    return file


def entries(user_id: UUID, directory: str = ROOT) -> list[tuple[str, int]]:
    """Path and size of everything in a directory; empty where there is no such directory."""
    return list(files_in(user_id, directory).values_list("path", "size"))


def is_directory(user_id: UUID, path: str, *, without: UUID | None = None) -> bool:
    """Whether a file other than `without` lies in it; the root is always there."""
    others = files_in(user_id, path)
    if without is not None:
        others = others.exclude(pk=without)
    return path == ROOT or others.exists()


def file_history(user_id: UUID, file_id: UUID) -> list[Version]:
    """The versions of a file that are kept, newest first."""
    file = file_get(user_id, file_id)
    kept = MemoryFileRevision.objects.for_user(user_id).filter(file_id=file_id).order_by("version")
    rows: list[MemoryFileRevision | MemoryFile] = [*kept, file]
    states = [{"path": row.path, "trust": row.trust} for row in rows]
    return versions_kept(file, list(kept), states, created="Created")
