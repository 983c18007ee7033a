"""Passages of conversations that wait to be read for what is worth remembering, and what became of each."""

from django.conf import settings
from django.db import models
from django.utils import timezone

from apps.core.jobs.leases import Leased
from apps.core.models import choices_checked

from .base import Owned


class WindowState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    DONE = "done", "Read"
    GAVE_UP = "gave_up", "Given up"
    WITHDRAWN = "withdrawn", "Withdrawn"


class GateVerdict(models.TextChoices):
    NONE = "", "Not judged"
    PASSED = "passed", "Worth reading"
    IDLE = "idle", "Nothing to remember"
    REPEATED = "repeated", "Read before"


@choices_checked
class CaptureWindow(Owned):
    """About 500 tokens of what was said in one conversation.

    `segments` are its numbered pieces (`apps.memory.capture.windows.Segment`) and `shown` the notes that Izzy itself put
    beside these turns; both are emptied as soon as the window is read, withdrawn or erased. A window that is not
    `full` takes in what is said next until somebody reads it. It may be read from `due_at` on. `version` grows with
    every change of the segments, so that what was read before the change is not applied. `fingerprint` is a keyed
    hash of its new words. `tainted` says that untrusted words came before the end of the window.
    """

    conversation_id = models.UUIDField()
    state = models.CharField(max_length=16, choices=WindowState, default=WindowState.WAITING)
    full = models.BooleanField(default=False)
    tainted = models.BooleanField(default=False)
    segments = models.JSONField(default=list, blank=True)
    shown = models.JSONField(default=list, blank=True)
    message_ids = models.JSONField(default=list, blank=True)
    tokens = models.PositiveIntegerField(default=0)
    version = models.PositiveIntegerField(default=0)
    fingerprint = models.CharField(max_length=64, blank=True, default="")
    due_at = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveSmallIntegerField(default=0)
    delays = models.PositiveSmallIntegerField(default=0)
    error_code = models.CharField(max_length=48, blank=True, default="")
    error = models.CharField(max_length=300, blank=True, default="")
    gate = models.CharField(max_length=16, choices=GateVerdict, blank=True, default=GateVerdict.NONE)
    gate_reason = models.CharField(max_length=200, blank=True, default="")
    added = models.PositiveSmallIntegerField(default=0)
    merged = models.PositiveSmallIntegerField(default=0)
    superseded = models.PositiveSmallIntegerField(default=0)
    pending = models.PositiveSmallIntegerField(default=0)
    skipped = models.PositiveSmallIntegerField(default=0)
    injected_again = models.PositiveSmallIntegerField(default=0)
    dropped = models.JSONField(default=list, blank=True)
    memory_ids = models.JSONField(default=list, blank=True)
    used_tokens = models.PositiveIntegerField(default=0)
    cost_usd = models.DecimalField(max_digits=12, decimal_places=6, default=0)
    created_at = models.DateTimeField(default=timezone.now)
    done_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            models.Index(fields=["user", "conversation_id"], name="window_conversation"),
            models.Index(
                fields=["due_at"], name="window_waiting", condition=models.Q(state=WindowState.WAITING)
            ),
            models.Index(fields=["user", "state"], name="window_state"),
            models.Index(
                fields=["user", "fingerprint"],
                name="window_fingerprint",
                condition=~models.Q(fingerprint=""),
            ),
        ]

    def __str__(self) -> str:
        return f"window {self.id} ({self.state})"


class CaptureLease(Leased):
    """The lease under which a user's windows are read: by one process at a time, so that they are read in their order."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )

    def __str__(self) -> str:
        return f"reader of {self.pk}"
