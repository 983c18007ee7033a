"""Rows of a user's memory: notes and files, what they were before each change, and how notes hang together."""

from typing import ClassVar

from django.conf import settings
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.core.ids import note_id, uuid7
from apps.core.models import UserOwned, choices_checked
from apps.core.text import truncated

from .base import (
    Action,
    FileAction,
    Kind,
    OccasionsBy,
    OccasionsWait,
    Origin,
    Owned,
    Proposal,
    Relation,
    ReviewReason,
    Revision,
    Status,
    Tier,
    Trust,
)
from .deletion import DeletableManager

PRIORITY_FLOOR = 0.05
"""A note whose present priority is below this is faded: `recall_memory` and the keyword score leave it out, everything else
shows it with a mark."""


class MemoryManager(DeletableManager["Memory"]):
    """Notes, of which a deleted one has that status too."""


@choices_checked
class Memory(Owned):
    """A note: one thing Izzy remembers about its user, in natural language.

    `priority` is the value written at decay cycle `priority_cycle` of the user; what it is now is
    `selectors.present_priority`. The text it had before each change is in `MemoryRevision`.

    A pending note says why it waits (`review_reason`) and what accepting it does: `proposed_action`, to the note
    `proposed_target` where there is one; of its fields those named in `proposed_fields` are part of the proposal.

    `occasions` are phrases that say when it matters: it is brought up by them, and they are never shown as its words.
    From `occasions_due` on the worker does for them what `occasions_wait` says; it has tried `occasions_tries` times.

    `access_count` counts each time that a tool answered with it or it was brought up; `use_count` only that it was brought up
    or opened: being one of ten results is no use.
    """

    content = models.TextField()
    tier = models.CharField(max_length=16, choices=Tier, default=Tier.LONG_TERM)
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.GENERAL)
    importance = models.PositiveSmallIntegerField(
        default=3, validators=[MinValueValidator(1), MaxValueValidator(5)]
    )
    priority = models.FloatField(default=0.9)
    decay_rate = models.FloatField(default=0.005)
    priority_cycle = models.PositiveBigIntegerField(default=0)
    tags = models.JSONField(default=list, blank=True)
    folded_content = models.TextField(editable=False, default="")  # see `fold`
    folded_tags = models.TextField(editable=False, default="")
    category = models.CharField(max_length=64, blank=True, default="")
    occasions = models.JSONField(default=list, blank=True)
    occasions_by = models.CharField(
        max_length=8, choices=OccasionsBy, blank=True, default=OccasionsBy.NONE
    )
    occasions_wait = models.CharField(
        max_length=8, choices=OccasionsWait, blank=True, default=OccasionsWait.NONE
    )
    occasions_due = models.DateTimeField(default=timezone.now)
    occasions_tries = models.PositiveSmallIntegerField(default=0)
    status = models.CharField(max_length=16, choices=Status, default=Status.ACTIVE)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_to = models.DateTimeField(null=True, blank=True)
    superseded_by = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,
        related_name="supersedes",
    )
    review_reason = models.CharField(max_length=16, choices=ReviewReason, blank=True, default="")
    proposed_action = models.CharField(max_length=16, choices=Proposal, blank=True, default="")
    proposed_target = models.ForeignKey(
        "self",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        db_index=False,
        related_name="proposals",
    )
    proposed_fields = models.JSONField(default=list, blank=True)
    origin = models.CharField(max_length=16, choices=Origin, default=Origin.USER)
    trust = models.CharField(max_length=16, choices=Trust, default=Trust.USER)
    source_conversation_id = models.UUIDField(null=True, blank=True)
    source_message_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    last_accessed = models.DateTimeField(null=True, blank=True)
    access_count = models.PositiveIntegerField(default=0)
    use_count = models.PositiveIntegerField(default=0)
    deleted_at = models.DateTimeField(null=True, blank=True)

    everything: ClassVar[models.Manager["Memory"]] = models.Manager()
    objects: ClassVar[MemoryManager] = MemoryManager()

    class Meta:
        verbose_name_plural = "memories"
        indexes = [
            models.Index(fields=["user", "-created_at", "-id"], name="memory_user_newest"),
            models.Index(
                fields=["user", "status", "-created_at", "-id"],
                name="memory_status_newest",
                condition=models.Q(deleted_at__isnull=True),
            ),
            models.Index(
                models.F("user"),
                Coalesce("valid_from", "created_at").desc(),
                models.F("id").desc(),
                name="memory_began",
                condition=models.Q(deleted_at__isnull=True),
            ),
            models.Index(
                fields=["deleted_at"],
                name="memory_deleted_at",
                condition=models.Q(deleted_at__isnull=False),
            ),
            models.Index(
                fields=["superseded_by"],
                name="memory_superseded_by",
                condition=models.Q(superseded_by__isnull=False),
            ),
            models.Index(
                fields=["proposed_target"],
                name="memory_proposed_target",
                condition=models.Q(proposed_target__isnull=False),
            ),
            models.Index(
                fields=["source_conversation_id"],
                name="memory_from_conversation",
                condition=models.Q(source_conversation_id__isnull=False),
            ),
            models.Index(
                fields=["user", "id"], name="memory_pending", condition=models.Q(status="pending")
            ),
            models.Index(  # by as many columns as `memory_status_newest`, or SQLite takes that one
                fields=["user", "status"],
                name="memory_standing",
                condition=models.Q(category="standing"),
            ),
            models.Index(
                fields=["occasions_wait", "occasions_due"],
                name="memory_occasions_wait",
                condition=~models.Q(occasions_wait=""),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(importance__gte=1, importance__lte=5), name="memory_importance_1_to_5"
            ),
            models.CheckConstraint(
                condition=models.Q(priority__gte=0, priority__lte=1), name="memory_priority_0_to_1"
            ),
            models.CheckConstraint(
                condition=models.Q(status="deleted", deleted_at__isnull=False)
                | (~models.Q(status="deleted") & models.Q(deleted_at__isnull=True)),
                name="memory_deleted_has_time",
            ),
        ]

    def __str__(self) -> str:
        return truncated(self.content, 60)

    @property
    def present(self) -> float:
        """The priority by now, on rows that `selectors` read; on others the one last written."""
        return float(vars(self).get("priority_now", self.priority))

    @property
    def faded(self) -> bool:
        """Whether the priority by now, see `present`, is below the floor."""
        return self.present < PRIORITY_FLOOR

    @property
    def unapproved(self) -> bool:
        """Whether it repeats others' words and nobody has said yes to it in the review."""
        waited = bool(self.review_reason) and self.status not in {Status.PENDING, Status.DELETED}
        return self.trust == Trust.UNTRUSTED and not waited

    @property
    def note_id(self) -> str:
        """The id as a model and a page show it: `note-<uuid>`."""
        return note_id(self.id)


@choices_checked
class MemoryRevision(Revision):
    """A state that a note had; `state` holds every other field that a user may change."""

    memory = models.ForeignKey(
        Memory, on_delete=models.CASCADE, db_index=False, related_name="revisions"
    )
    state = models.JSONField(default=dict)
    action = models.CharField(max_length=16, choices=Action)

    class Meta:
        indexes = [models.Index(fields=["user", "-created_at"], name="memory_revision_newest")]
        constraints = [
            models.UniqueConstraint(fields=["memory", "version"], name="memory_revision_version"),
        ]

    def __str__(self) -> str:
        return f"version {self.version} of {self.memory_id}"


class MemoryEdge(UserOwned):
    """A directed link between two notes of one user."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    source = models.ForeignKey(
        Memory, on_delete=models.CASCADE, db_index=False, related_name="edges_out"
    )
    target = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="edges_in")
    relation = models.CharField(max_length=64, default=Relation.RELATED)
    weight = models.FloatField(default=1.0)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(
                fields=["user"],
                name="memory_edge_contradicts",
                condition=models.Q(relation="contradicts"),
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["source", "target", "relation"], name="memory_edge_once"),
            models.CheckConstraint(
                condition=~models.Q(source=models.F("target")), name="memory_edge_not_to_itself"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.source_id} {self.relation} {self.target_id}"


class DecayCycle(models.Model):
    """How many chat turns a user has had: the clock that priorities decay by."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    cycle = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"cycle {self.cycle} of {self.pk}"


MAX_PATH_CHARS = 500


class MemoryFileManager(DeletableManager["MemoryFile"]):
    """Files."""


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

    file = models.ForeignKey(
        MemoryFile, on_delete=models.CASCADE, db_index=False, related_name="revisions"
    )
    path = models.CharField(max_length=MAX_PATH_CHARS)
    trust = models.CharField(max_length=16, choices=Trust, default=Trust.USER)
    action = models.CharField(max_length=16, choices=FileAction)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["file", "version"], name="memory_file_revision_version"),
        ]

    def __str__(self) -> str:
        return f"version {self.version} of {self.file_id}"
