"""Receipts of purges: what was looked at and what is left, without a word of what was purged."""

from django.db import models
from django.utils import timezone

from apps.core.models import choices_checked

from .base import Owned


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
