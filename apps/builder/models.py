"""Rows of the builder: builds, what user and builder say to each other, and the builder's talk with its model."""

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone

from apps.capabilities.models import Capability
from apps.core.ids import uuid7
from apps.core.jobs.leases import Leased
from apps.core.models import OrderedJSONField, UserOwned, choices_checked


class Kind(models.TextChoices):
    NEW = "new", "New"
    CHANGE = "change", "Change"
    REPAIR = "repair", "Repair"


class State(models.TextChoices):
    QUEUED = "queued", "Waiting for its turn"
    RUNNING = "running", "Being built"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"
    CANCELLED = "cancelled", "Cancelled"


OPEN_STATES = (State.QUEUED, State.RUNNING)
"""A build in one of these still goes on; the others are final."""


@choices_checked
class Build(UserOwned, Leased):
    """One attempt of the builder at a capability: from the request to a verified version, or to a reason why not.

    `description` and `input_schema` are what was asked for, `request` the user's own words that led to it, `feedback` what a
    change or repair is to do, `execution_id` the run that failed. Conversation and turn, where it was asked for first, belong to
    apps further right, so their ids are kept without a foreign key. `hosts` are those the user has allowed while it was built, `secrets`
    `{name: hosts}` those that a tool which reaches these hosts may use.

    One process at a time runs it; `attempt` counts how often one took it up.
    `has_transcript` ends when its rounds are removed (IZZY_BUILD_TRANSCRIPT_DAYS).
    `messages_count` is the number of its newest message.
    The tool calls and model calls of the build carry its id as their turn.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    capability = models.ForeignKey(Capability, on_delete=models.CASCADE, related_name="builds")
    name = models.CharField(max_length=48)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.NEW)
    description = models.TextField()
    input_schema = OrderedJSONField(default=dict)
    request = models.TextField(blank=True, default="")
    feedback = models.TextField(blank=True, default="")
    execution_id = models.UUIDField(null=True, blank=True)
    conversation_id = models.UUIDField(null=True, blank=True)
    turn_id = models.UUIDField(null=True, blank=True)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    reason = models.TextField(blank=True, default="", help_text="Why it failed.")
    error_code = models.CharField(max_length=48, blank=True, default="")
    last_error = models.TextField(
        blank=True, default="", help_text="The newest failure that the builder saw."
    )
    version = models.PositiveIntegerField(null=True, blank=True)
    hosts = models.JSONField(default=list, blank=True)
    secrets = models.JSONField(default=dict, blank=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    cancel_requested = models.BooleanField(default=False)
    has_transcript = models.BooleanField(default=True)
    messages_count = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering: ClassVar = ["-created_at"]
        indexes: ClassVar = [
            models.Index(fields=["user", "-created_at"], name="build_user_time"),
            models.Index(fields=["ended_at"], name="build_transcript", condition=Q(has_transcript=True)),
            models.Index(
                fields=["state"], name="build_open", condition=Q(state__in=["queued", "running"])
            ),
        ]
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["capability"],
                name="build_one_open",
                condition=Q(state__in=["queued", "running"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES

    @classmethod
    def lease_free(cls, prefix: str = "") -> Q:
        """Those that wait, and those whose process is gone."""
        return super().lease_free(prefix) & Q(**{f"{prefix}state__in": OPEN_STATES})


class Follower(UserOwned):
    """A turn that asked for a build, first or while it was under way: its conversation shows it and
    its end. `emitted` is the number of the newest message that the conversation's log has, `has_news` says
    that it lacks some."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    build = models.ForeignKey(Build, on_delete=models.CASCADE, related_name="followers", db_index=False)
    conversation_id = models.UUIDField()
    turn_id = models.UUIDField()
    emitted = models.PositiveIntegerField(default=0)
    has_news = models.BooleanField(default=False)

    class Meta:
        ordering: ClassVar = ["pk"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["build", "turn_id"], name="build_follower_turn"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["conversation_id"], name="build_follower_place"),
            models.Index(
                fields=["conversation_id"], name="build_follower_news", condition=Q(has_news=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.turn_id} follows {self.build_id}"


class Direction(models.TextChoices):
    TO_USER = "to_user", "to the user"
    TO_BUILDER = "to_builder", "to the builder"


class MessageType(models.TextChoices):
    QUESTION = "question", "Question"
    ANSWER = "answer", "Answer"
    PROGRESS = "progress", "Progress"
    COMPLETE = "complete", "Complete"
    ERROR = "error", "Error"


@choices_checked
class BuilderMessage(UserOwned):
    """One message of the queue between builder and user. `number` counts from 1 within its build, in the order in which
    messages became visible. `read` says that the other side has taken it up.

    Payloads: progress `{text, stage}`; question `{kind: "answer", text, seconds}`, `{kind: "network", hosts, why, text,
    seconds}` or `{kind: "secrets", secrets, hosts, text, seconds}` (names, never values); answer `{question, text}` or
    `{question, kind, decision: "allow"|"deny", hosts|secrets}`; complete `{text, stage, capability, version,
    waits_for_approval, verified, problem, hosts, secrets}`, again whenever its version comes to another stage
    (`apps.builder.builds.ending`); error `{code, text}`.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    build = models.ForeignKey(Build, on_delete=models.CASCADE, related_name="messages", db_index=False)
    number = models.PositiveIntegerField()
    direction = models.CharField(max_length=16, choices=Direction)
    type = models.CharField(max_length=16, choices=MessageType)
    payload = OrderedJSONField(default=dict)
    read = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["number"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["build", "number"], name="builder_message_number"),
        ]
        indexes: ClassVar = [
            models.Index(
                fields=["build"],
                name="builder_message_unread",
                condition=Q(direction="to_builder", read=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.number}"


@choices_checked
class DialogueMessage(UserOwned):
    """One message of the builder's talk with its model, as canonical JSON of its content blocks: what a build goes on from
    after a restart. `round` is 0 for the brief."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    build = models.ForeignKey(Build, on_delete=models.CASCADE, related_name="dialogue", db_index=False)
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=16, choices=[("user", "user"), ("assistant", "assistant")])
    blocks = models.TextField()
    round = models.PositiveSmallIntegerField(default=0)
    stop_reason = models.CharField(max_length=32, blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering: ClassVar = ["position"]
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["build", "position"], name="builder_dialogue_position"),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.position}"
