"""How notes and files go: kept for 30 days after their deletion, then purged, with a receipt that holds no word of them."""

from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID

from django.db import models
from django.utils import timezone

from apps.core.models import OwnedManager, choices_checked

from .base import Owned

M = TypeVar("M", bound=models.Model)

KEEP_DELETED = timedelta(days=30)
"""How long a deleted note or file can be restored."""


class DeletableManager(OwnedManager[M]):
    """The rows a user still has; a deleted one (`deleted_at`) is only in what says `with_deleted` or `restorable`."""

    def unscoped(self) -> models.QuerySet[M]:
        return super().unscoped().filter(deleted_at=None)

    def with_deleted(self, user_id: UUID) -> models.QuerySet[M]:
        """All rows of a user, also those in the 30 days after their deletion."""
        return super().unscoped().filter(user_id=user_id)

    def restorable(self, user_id: UUID) -> models.QuerySet[M]:
        """The rows of a user that were deleted in the last 30 days."""
        return self.with_deleted(user_id).filter(deleted_at__gt=timezone.now() - KEEP_DELETED)

    def all_deleted(self) -> models.QuerySet[M]:
        """Everybody's deleted rows, for the sweep."""
        return super().unscoped().exclude(deleted_at=None)


def is_gone(deleted_at: datetime | None) -> bool:
    """Whether what was deleted then can not be restored any more."""
    return deleted_at is not None and deleted_at <= timezone.now() - KEEP_DELETED


class Purged(models.TextChoices):
    """Kind of purged row."""

    NOTE = "memory", "Memory"
    FILE = "file", "File"


class PurgeState(models.TextChoices):
    RUNNING = "running", "Under way"
    DONE = "done", "Done"
    UNPROVEN = "unproven", "Interrupted before the last look"


@choices_checked
class PurgeReceipt(Owned):
    """One purge. Holds ids and counts alone.

    `subject_ids` are the notes or files, the one that was asked for first. `places` is a list of `{place, label, why,
    found, removed, left}` in rows; `source_messages` of `{id, conversation, redacted}`; `related_ids` are other notes
    that share words with what was purged. A receipt that is `running` is finished by the sweep.
    """

    source = models.CharField(max_length=16, choices=Purged)
    subject_ids = models.JSONField(default=list)
    message_ids = models.JSONField(default=list, help_text="Messages to be redacted with it.")
    by_sweep = models.BooleanField(default=False, help_text="30 days after the deletion, not asked for.")
    state = models.CharField(max_length=16, choices=PurgeState, default=PurgeState.RUNNING)
    places = models.JSONField(default=list)
    source_messages = models.JSONField(default=list)
    related_ids = models.JSONField(default=list)
    started_at = models.DateTimeField(default=timezone.now)
    purged_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-started_at"]
        indexes = [
            models.Index(fields=["user", "-started_at"], name="purge_user_newest"),
            models.Index(
                fields=["started_at"], name="purge_running", condition=models.Q(state="running")
            ),
        ]

    def __str__(self) -> str:
        return f"purge of {self.source} {self.subject_ids[0] if self.subject_ids else ''}"

    @property
    def left(self) -> list[dict[str, object]]:
        """The places in which something is left."""
        return [place for place in self.places if place["left"]]
