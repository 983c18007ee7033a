"""Rows of a user's file memory: texts under /memories, and what they were before each change."""

from typing import ClassVar
from uuid import UUID

from django.db import models
from django.utils import timezone

from apps.core.models import OwnedManager, choices_checked

from .base import KEEP_DELETED, Owned, Revision
from .choices import FileAction, Origin, Trust

MAX_PATH_CHARS = 500


class MemoryFileManager(OwnedManager["MemoryFile"]):
    """The files a user has now; a deleted one is only in what says `with_deleted` or `restorable`."""

    def unscoped(self) -> models.QuerySet["MemoryFile"]:
        return super().unscoped().filter(deleted_at=None)

    def with_deleted(self, user_id: UUID) -> models.QuerySet["MemoryFile"]:
        """All files of a user, also those in the 30 days after their deletion."""
        return super().unscoped().filter(user_id=user_id)

    def restorable(self, user_id: UUID) -> models.QuerySet["MemoryFile"]:
        """The files of a user that were deleted in the last 30 days."""
        return self.with_deleted(user_id).filter(deleted_at__gt=timezone.now() - KEEP_DELETED)

    def all_deleted(self) -> models.QuerySet["MemoryFile"]:
        """Everybody's deleted files, for the sweep."""
        return super().unscoped().exclude(deleted_at=None)


@choices_checked
class MemoryFile(Owned):
    """A text file. Directories have no rows: one exists as long as a file lies in it.

    `path` is normalised and begins with /memories/; `size` counts the bytes of the content in UTF-8.
    `trust` is that of the least trusted whose words it holds.
    """

    path = models.CharField(max_length=MAX_PATH_CHARS)
    content = models.TextField(blank=True)
    size = models.PositiveIntegerField()
    origin = models.CharField(max_length=16, choices=Origin, default=Origin.USER)
    trust = models.CharField(max_length=16, choices=Trust, default=Trust.USER)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True, blank=True)

    everything: ClassVar[models.Manager["MemoryFile"]] = models.Manager()
    objects: ClassVar[MemoryFileManager] = MemoryFileManager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "path"],
                name="memory_file_path_once",
                condition=models.Q(deleted_at__isnull=True),
            ),
        ]
        indexes = [
            models.Index(fields=["user", "deleted_at"], name="memory_file_user_deleted"),
            models.Index(
                fields=["deleted_at"],
                name="memory_file_deleted_at",
                condition=models.Q(deleted_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return self.path


@choices_checked
class MemoryFileRevision(Revision):
    """A state that a file had."""

    file = models.ForeignKey(MemoryFile, on_delete=models.CASCADE, db_index=False, related_name="revisions")
    path = models.CharField(max_length=MAX_PATH_CHARS)
    trust = models.CharField(max_length=16, choices=Trust, default=Trust.USER)
    action = models.CharField(max_length=16, choices=FileAction)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["file", "version"], name="memory_file_revision_version"),
        ]

    def __str__(self) -> str:
        return f"version {self.version} of {self.file_id}"
