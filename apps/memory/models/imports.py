"""Imports: what a user brings in from a file, taken in by the worker."""

from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.core.jobs.leases import Leased
from apps.core.models import choices_checked

from .base import Owned


class ImportState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    RUNNING = "running", "Under way"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


OPEN_IMPORTS = (ImportState.WAITING, ImportState.RUNNING)


LABELS = {
    "decay": "Clock of fading",
    "note": "Memories",
    "revision": "Earlier versions of memories",
    "edge": "Links",
    "file": "Files",
    "file_revision": "Earlier versions of files",
    "capability": "Capabilities",
    "capability_version": "Versions of capabilities",
    "build": "Builds",
    "builder_message": "Messages of builds",
    "folder": "Folders",
    "conversation": "Conversations",
    "turn": "Turns",
    "message": "Messages",
    "tool_call": "Tool calls",
    "handle": "Short names",
    "use": "When memories came up",
    "record": "Others",
}
"""Names for people of the kinds of records."""


@choices_checked
class Import(Owned, Leased):
    """An import. Its file lies in the folder `imports` of the data directory until it has ended.

    `format` is what was asked for, `auto` or a format's name, `reader` the format that the file is in. `done` of `total` counts
    bytes of Izzy's own files, records of others. `cursor` says where to go on after a restart: how far the file was
    read (`at`), its line, a checksum of which records those were (`mark`), what plans keep from batch to batch (`facts`) and what waits for the end of the file (`later`). It
    changes in the transaction of each batch, and so does `report` (`apps.core.transfer.Report`).
    """

    state = models.CharField(max_length=16, choices=ImportState, default=ImportState.WAITING)
    name = models.CharField(max_length=200, blank=True, default="")
    pasted = models.BooleanField(default=False)
    size = models.PositiveBigIntegerField(default=0)
    format = models.CharField(max_length=32, default="auto")
    reader = models.CharField(max_length=32, blank=True, default="")
    dry_run = models.BooleanField(default=False)
    own = models.BooleanField(default=False)
    accept = models.BooleanField(default=False)
    cancel_requested = models.BooleanField(default=False)
    done = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(default=0)
    cursor = models.JSONField(default=dict, blank=True)
    report = models.JSONField(default=dict, blank=True)
    error_code = models.CharField(max_length=48, blank=True, default="")
    error = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]
        indexes = [
            models.Index(fields=["user", "-created_at"], name="import_user_newest"),
            models.Index(
                fields=["created_at"], name="import_open", condition=Q(state__in=["waiting", "running"])
            ),
        ]

    def __str__(self) -> str:
        return f"import of {self.name or 'text'} ({self.state})"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_IMPORTS

    @property
    def percent(self) -> int:
        """How much of the file is read, 0 to 100."""
        if self.state == ImportState.DONE:
            return 100
        return min(99, self.done * 100 // self.total) if self.total else 0

    @property
    def kinds_shown(self) -> list[dict[str, Any]]:
        """The outcome for each kind of record, with its name for people as `label`."""
        rows: list[dict[str, Any]] = self.report.get("kinds", [])
        return [{**row, "label": LABELS.get(row["kind"], row["kind"].capitalize())} for row in rows]

    @property
    def waits_for_review(self) -> bool:
        """Whether it has brought memories in, or what they are made of, that its user has not vouched for."""
        if self.state != ImportState.DONE or self.dry_run or self.own or self.accept:
            return False
        rows = self.report.get("kinds", [])
        return any(row["kind"] in {"note", "message"} and row["taken"] for row in rows)

    @classmethod
    def lease_free(cls, prefix: str = "") -> Q:
        """Those that have not ended."""
        return super().lease_free(prefix) & Q(**{f"{prefix}state__in": OPEN_IMPORTS})
