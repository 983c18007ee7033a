"""Rows of the catalog: a user's tools, their versions, and what happened whenever one was run."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.core.ids import uuid7
from apps.core.jobs.leases import Leased
from apps.core.models import OrderedJSONField, UserOwned, choices_checked

MAX_NAME_CHARS = 48
MAX_DESCRIPTION_CHARS = 1_000


class Status(models.TextChoices):
    BUILDING = "building", "Being built"
    ACTIVE = "active", "Active"
    FAILED = "failed", "Failed"
    DISABLED = "disabled", "Disabled"


class Origin(models.TextChoices):
    """A version's author."""

    USER = "user", "you"
    API = "api", "a program"
    BUILDER = "assistant", "the assistant"
    IMPORT = "import", "an archive"


@choices_checked
class Capability(UserOwned):
    """A tool of one user. Description, schemas and tags are those of its current version.

    `path` is the folder of the current version in the storage, "" before there is one. `runs`, `successes` and
    `failures_in_row` count what the tool itself did, not what a missing sandbox or a stopped turn prevented.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=MAX_NAME_CHARS)
    description = models.TextField(max_length=MAX_DESCRIPTION_CHARS)
    status = models.CharField(max_length=16, choices=Status, default=Status.BUILDING)
    status_reason = models.TextField(blank=True, default="", help_text="Why it failed or was disabled.")
    input_schema = OrderedJSONField(default=dict)
    output_schema = OrderedJSONField(default=dict, blank=True)
    tags = models.JSONField(default=list, blank=True)
    current = models.ForeignKey(
        "CapabilityVersion", on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    path = models.CharField(max_length=200, blank=True, default="")
    runs = models.PositiveIntegerField(default=0)
    successes = models.PositiveIntegerField(default=0)
    failures_in_row = models.PositiveIntegerField(default=0)
    last_run_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        verbose_name_plural = "capabilities"
        ordering: ClassVar = ["name"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["user", "name"], name="capability_name"),
        ]

    def __str__(self) -> str:
        return self.name


@choices_checked
class CapabilityVersion(UserOwned, Leased):
    """One state of a capability, never changed after it was written: four files and what they may reach.

    `checksums` maps each file's name to the SHA-256 of its bytes, `checksum` covers all of them. `approved_at` is
    when the user allowed its hosts and secrets, or an `untrusted` one (from an archive) to be run at all.
    `quotes_others` says that whoever wrote it had read other people's words before, which it may repeat.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    capability = models.ForeignKey(Capability, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    description = models.TextField(max_length=MAX_DESCRIPTION_CHARS)
    input_schema = OrderedJSONField(default=dict)
    output_schema = OrderedJSONField(default=dict, blank=True)
    tags = models.JSONField(default=list, blank=True)
    hosts = models.JSONField(default=list, blank=True)
    secrets = models.JSONField(default=list, blank=True)
    examples = OrderedJSONField(default=list, blank=True)
    path = models.CharField(max_length=200)
    checksums = models.JSONField(default=dict)
    checksum = models.CharField(max_length=64)
    origin = models.CharField(max_length=16, choices=Origin, default=Origin.USER)
    untrusted = models.BooleanField(default=False)
    quotes_others = models.BooleanField(default=False)
    approved_at = models.DateTimeField(null=True, blank=True)
    approved_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    tested_at = models.DateTimeField(null=True, blank=True)
    test_failures = models.JSONField(
        default=list, blank=True, help_text="What the newest test of examples said."
    )
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["-number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["capability", "number"], name="capability_version_number"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["approved_at"],
                name="capability_version_unproven",
                condition=Q(origin="assistant", tested_at=None, approved_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"version {self.number}"

    @property
    def needs_approval(self) -> bool:
        """Whether the user has to allow it before it may run: it asks for hosts or secrets, or others wrote it."""
        return bool(self.hosts or self.secrets or self.untrusted)

    @property
    def is_approved(self) -> bool:
        return self.approved_at is not None or not self.needs_approval

    @property
    def is_unproven(self) -> bool:
        """Whether the builder handed it in before its examples could be run: they need what was not allowed yet."""
        return self.origin == Origin.BUILDER and bool(self.examples) and self.tested_at is None

    @property
    def is_pending(self) -> bool:
        """Whether one of the assistant's waits for the user's yes, or for its test after that."""
        return self.origin == Origin.BUILDER and (not self.is_approved or self.is_unproven)


class Trigger(models.TextChoices):
    """A run's trigger."""

    CHAT = "chat", "a conversation"
    PAGE = "page", "you"
    API = "api", "a program"
    RETEST = "retest", "a test of the examples"


ENDINGS = {
    "raised": "Failed with an error",
    "install_failed": "Packages could not be installed",
    "timed_out": "Took too long",
    "out_of_memory": "Out of memory",
    "bad_result": "Gave no proper result",
    "too_much_output": "Printed too much",
    "limit_exceeded": "Too many processes or files",
    "cancelled": "Stopped",
    "interrupted": "Interrupted",
    "sandbox_failed": "The sandbox failed",
}
"""How a failed run ended, in words for people."""


@choices_checked
class Execution(UserOwned, Leased):
    """One run. Input, result, logs and error are scrubbed of secrets before they are stored."""

    class State(models.TextChoices):
        RUNNING = "running", "Running"
        OK = "ok", "Done"
        FAILED = "failed", "Failed"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    capability = models.ForeignKey(
        Capability, on_delete=models.CASCADE, related_name="executions", db_index=False
    )
    version = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=State, default=State.RUNNING)
    trigger = models.CharField(max_length=16, choices=Trigger, default=Trigger.API)
    input = OrderedJSONField(default=dict)
    result = models.TextField(blank=True, default="")
    error_code = models.CharField(max_length=48, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    stdout = models.TextField(blank=True, default="")
    stderr = models.TextField(blank=True, default="")
    hosts_used = models.JSONField(default=list, blank=True)
    backend = models.CharField(max_length=32, blank=True, default="")
    duration_ms = models.PositiveIntegerField(default=0)
    conversation_id = models.UUIDField(null=True, blank=True)
    turn_id = models.UUIDField(null=True, blank=True)
    tool_call_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [
            models.Index(fields=["capability", "-created_at"], name="execution_capability_time"),
            models.Index(fields=["created_at"], name="execution_time"),
            models.Index(fields=["conversation_id"], name="execution_conversation"),
            models.Index(fields=["state"], name="execution_running", condition=Q(state="running")),
        ]

    def __str__(self) -> str:
        return f"{self.state} {self.created_at:%Y-%m-%d %H:%M}"

    @property
    def ending(self) -> str:
        """How it ended, in words."""
        if self.state != self.State.FAILED:
            return str(self.get_state_display())
        return ENDINGS.get(self.error_code, "Failed")
