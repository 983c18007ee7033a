"""Rows of the chat: conversations, their messages, the turns that made them, and the events of each turn."""

from typing import Any, ClassVar
from uuid import UUID

from django.db import models
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.core.ids import uuid7
from apps.core.jobs.leases import Leased
from apps.core.models import OwnedManager, UserOwned, choices_checked
from apps.core.text import truncated

MAX_TITLE = 200


class Folder(UserOwned):
    """A folder of conversations. `opened`: the list beside every page shows what is in it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=60)
    opened = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "name"], name="folder_name")]

    def __str__(self) -> str:
        return self.name


class ConversationManager(OwnedManager["Conversation"]):
    """Leaves out a user's conversations that are being deleted; `unscoped` has those too."""

    def for_user(self, user: models.Model | UUID) -> "QuerySet[Conversation]":
        return super().for_user(user).filter(deleted_at=None)

    def owned_by(self, user: models.Model | UUID) -> "QuerySet[Conversation]":
        return super().owned_by(user).filter(deleted_at=None)


class Conversation(UserOwned, Leased):
    """A conversation with Izzy, or one that a program ingested.

    Izzy's own have channel `chat` and no session; an ingested one is found again by (user, channel, session).
    `tools` is the canonical JSON of the tool definitions sent so far: it only ever grows at its end.

    One process at a time writes a conversation's event log and runs its turns. `last_seq` is the highest sequence number handed out or reserved, `stored_seq` the highest
    whose event is in the table, `pruned_seq` the highest that has been removed from it.

    `summary` stands in the prompt for the messages up to position `summary_until` (0: none are summed up), which stay
    in their rows. `summary_by` is the model that wrote it, or `extract` where none did; `summary_untrusted` says that
    other people's text (a page, a file) was read in what it sums up.

    `model` and `instructions` are its own, in the place of the user's and beside them; empty ones leave it to those.

    `pinned` puts it above the others in the user's list, `archived` takes it out of that list until its user
    writes in it again; a search finds it all the same.

    `deleted_at` says that it is being deleted: nobody finds it any more, and from that time on its rows go slice by slice; until
    then it can be brought back.
    """

    said: Any = None
    """The passage that a search found in it."""
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    title = models.CharField(max_length=MAX_TITLE, blank=True, default="")
    title_by_user = models.BooleanField(default=False)
    use_memory = models.BooleanField(default=True)
    model = models.CharField(max_length=100, blank=True, default="")
    instructions = models.TextField(max_length=4000, blank=True, default="")
    pinned = models.BooleanField(default=False)
    archived = models.BooleanField(default=False)
    folder = models.ForeignKey(Folder, on_delete=models.SET_NULL, null=True, blank=True, db_index=False)
    channel = models.CharField(max_length=64, default="chat")
    session = models.CharField(max_length=200, blank=True, default="")
    summary = models.TextField(blank=True, default="")
    summary_until = models.PositiveIntegerField(default=0)
    summary_untrusted = models.BooleanField(default=False)
    summary_by = models.CharField(max_length=100, blank=True, default="")
    summary_at = models.DateTimeField(null=True, blank=True)
    tools = models.TextField(blank=True, default="[]")
    last_position = models.PositiveIntegerField(default=0)
    last_seq = models.PositiveBigIntegerField(default=0)
    stored_seq = models.PositiveBigIntegerField(default=0)
    pruned_seq = models.PositiveBigIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)
    updated_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True, blank=True)

    everything: ClassVar["models.Manager[Conversation]"] = models.Manager()
    objects: ClassVar[ConversationManager] = ConversationManager()
    lease_only: ClassVar = {"deleted_at": None}
    lease_grows: ClassVar = ("last_seq",)

    class Meta:
        indexes = [
            models.Index(fields=["user", "-updated_at"], name="conversation_user_updated"),
            models.Index(
                fields=["user", "archived", "-pinned", "-updated_at"], name="conversation_listed"
            ),
            models.Index(
                fields=["folder", "-updated_at"],
                name="conversation_in_folder",
                condition=Q(folder__isnull=False),
            ),
            models.Index(
                fields=["id"], name="conversation_deleted", condition=Q(deleted_at__isnull=False)
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["user", "channel", "session"],
                condition=~Q(session=""),
                name="conversation_session",
            ),
        ]

    def __str__(self) -> str:
        return self.title or "New conversation"


class TurnStatus(models.TextChoices):
    QUEUED = "queued", "Queued"
    RUNNING = "running", "Running"
    WAITING = "waiting", "Waiting for you"
    DONE = "done", "Done"
    STOPPED = "stopped", "Stopped"
    FAILED = "failed", "Failed"
    INTERRUPTED = "interrupted", "Interrupted"


OPEN_STATES = (TurnStatus.QUEUED, TurnStatus.RUNNING, TurnStatus.WAITING)
"""A turn in one of these may still change; the others are final."""


@choices_checked
class Turn(UserOwned):
    """One message of the user and everything Izzy does to answer it.

    `position` is the place that its opening message was given first: turns are ordered by it, since it only grows
    within a conversation, whatever the clock does. `memories` are the surfaced items as the `memory_context` event gave them, `waiting_for` the events
    (`question`, `approval_requested`) whose answers it waits for, `usage` the tokens and cost of the whole turn.
    `attempt` counts how often a runner took it up. `stop_requested` and `announced` are how others
    talk to the process that runs the conversation: a request to stop, and a change that no event has been logged of yet.
    `client_id` is the page's own name for the message: sending it again finds this turn instead of making one.
    With `attached` files stand beside the user's message, so others' words were read from here on. `spoken`: the user said it aloud.
    `place` is the position of the first turn that stood in its place, 0 where none but it did: those that share one are versions of
    each other (`chat.turns.branches`). `chosen`: it was brought back, and no event has been logged of that yet.
    A turn `by_izzy` was opened by Izzy itself (a build has ended), with a notice to the model in place of the user's
    message; where `said` holds the answer, no model is asked.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="turns", db_index=False
    )
    position = models.PositiveIntegerField(default=0)
    place = models.PositiveIntegerField(default=0)
    state = models.CharField(max_length=16, choices=TurnStatus, default=TurnStatus.QUEUED)
    client_id = models.CharField(max_length=64, blank=True, default="")
    model = models.CharField(max_length=100, blank=True, default="")
    memories = models.JSONField(default=list, blank=True)
    memory_tokens = models.PositiveIntegerField(default=0)
    waiting_for = models.JSONField(default=list, blank=True)
    usage = models.JSONField(default=dict, blank=True)
    by_izzy = models.BooleanField(default=False)
    attached = models.BooleanField(default=False)
    spoken = models.BooleanField(default=False)
    said = models.TextField(blank=True, default="")
    attempt = models.PositiveSmallIntegerField(default=0)
    announced = models.BooleanField(default=False)
    chosen = models.BooleanField(default=False)
    stop_requested = models.BooleanField(default=False)
    error_code = models.CharField(max_length=64, blank=True, default="")
    error_message = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(default=timezone.now)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["position"]
        indexes = [
            models.Index(fields=["state"], name="turn_state"),
            models.Index(fields=["conversation"], name="turn_attached", condition=Q(attached=True)),
            models.Index(fields=["conversation", "place"], name="turn_versions", condition=~Q(place=0)),
        ]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "position"], name="turn_position"),
            models.UniqueConstraint(
                fields=["user", "client_id"], condition=~Q(client_id=""), name="turn_client_id"
            ),
        ]

    def __str__(self) -> str:
        return f"turn {self.id} ({self.state})"


class Role(models.TextChoices):
    USER = "user", "User"
    ASSISTANT = "assistant", "Assistant"


class MessageKind(models.TextChoices):
    TEXT = "text", "Text"
    TOOL_RESULTS = "tool_results", "Tool results"
    CLOSING = "closing", "Closing"
    NOTICE = "notice", "Notice"


@choices_checked
class Message(UserOwned):
    """One message as the model sees it.

    `blocks` is the canonical JSON of its content blocks, written once and sent byte for byte ever after (a user's
    message gets its block of memories and date when its turn starts, before the first request); files stand there as
    `{"type": "attachment", "id": …}` and get their words or picture when a request is made. `text` is what
    people read: the user's words or the assistant's text, "" for tool results and for the closing words that stand
    in the model's history where a turn ended without an answer, or Izzy opened it by a notice. `position` orders a conversation;
    `round` is the round of its turn, 0 for the user's message; `seq` the last event before it was stored. A message
    that gave way to another version carries the turn that took its place in `superseded_by` and is out of history,
    pages and search; `branch` is the position of the turn with which its branch began, 0 for one in force. `indexed` and `captured` say that search, and the windows of capture, have taken it in.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    turn = models.ForeignKey(
        Turn, on_delete=models.CASCADE, null=True, blank=True, related_name="messages"
    )
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=16, choices=Role)
    kind = models.CharField(max_length=16, choices=MessageKind, default=MessageKind.TEXT)
    blocks = models.TextField(default="[]")
    text = models.TextField(blank=True, default="")
    speaker = models.CharField(max_length=100, blank=True, default="")
    external_id = models.CharField(max_length=200, blank=True, default="")
    stop_reason = models.CharField(max_length=32, blank=True, default="")
    round = models.PositiveSmallIntegerField(default=0)
    seq = models.PositiveBigIntegerField(default=0)
    superseded_by = models.ForeignKey(
        Turn, on_delete=models.CASCADE, null=True, blank=True, related_name="supersedes"
    )
    branch = models.PositiveIntegerField(default=0)
    indexed = models.BooleanField(default=False)
    captured = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["position"]
        indexes = [
            # In the order in which the sweeps ask for them: else they go through all messages there are.
            models.Index(fields=["id"], name="message_to_index", condition=Q(indexed=False)),
            models.Index(
                fields=["conversation"], name="message_to_capture", condition=Q(captured=False)
            ),
        ]
        constraints = [
            models.UniqueConstraint(fields=["conversation", "position"], name="message_position"),
            models.UniqueConstraint(
                fields=["conversation", "external_id"],
                condition=~Q(external_id=""),
                name="message_external_id",
            ),
        ]

    def __str__(self) -> str:
        return truncated(self.text, 60)


class AttachmentKind(models.TextChoices):
    TEXT = "text", "Text"
    PDF = "pdf", "PDF"
    IMAGE = "image", "Image"


@choices_checked
class Attachment(UserOwned):
    """A file that the user put beside a message. Without a conversation it has not been sent yet.

    The file lies in the storage `shared` as it was brought; of an image a copy for models and pages lies beside it, in
    the format `shown_type` and of `width` and `height`. `text` is what was read from it (at most 2,000,000 characters; all of it where
    `whole`), `pages` counts those of a PDF. `tokens` is the most that it takes in a request.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, null=True, blank=True, related_name="attachments"
    )
    name = models.CharField(max_length=120)
    kind = models.CharField(max_length=16, choices=AttachmentKind)
    media_type = models.CharField(max_length=64)
    shown_type = models.CharField(max_length=64, blank=True, default="")
    size = models.PositiveIntegerField()
    sha256 = models.CharField(max_length=64)
    text = models.TextField(blank=True, default="")
    characters = models.PositiveIntegerField(default=0)
    whole = models.BooleanField(default=True)
    pages = models.PositiveIntegerField(default=0)
    width = models.PositiveIntegerField(default=0)
    height = models.PositiveIntegerField(default=0)
    tokens = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(
                fields=["created_at"], name="attachment_unsent", condition=Q(conversation=None)
            ),
        ]

    def __str__(self) -> str:
        return self.name


class TurnEvent(models.Model):
    """One event of a turn, or a run of its text deltas.

    `payload` is the event's JSON without `type`, `conversation`, `turn` and `seq`. Consecutive text deltas
    share a row: `payload` is then `{"texts": [...]}` and they have the numbers `seq` to `last_seq`, one each.
    """

    id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(
        Conversation, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    turn = models.ForeignKey(Turn, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    last_seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=32)
    payload = models.TextField(default="{}")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["seq"]
        indexes = [models.Index(fields=["conversation", "last_seq"], name="turn_event_last_seq")]
        constraints = [models.UniqueConstraint(fields=["conversation", "seq"], name="turn_event_seq")]

    def __str__(self) -> str:
        return f"{self.type} {self.seq}"
