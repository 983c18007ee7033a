"""When notes came up, the last few times of each."""

from django.db import models
from django.utils import timezone

from apps.core.models import choices_checked

from .base import Owned
from .notes import Memory

MAX_QUESTION_CHARS = 300
MAX_WHY_CHARS = 300


class UsedIn(models.TextChoices):
    SURFACED = "surfaced", "Brought up"
    SEARCHED = "searched", "Found first in a search"
    READ = "read", "Read by a program"


@choices_checked
class MemoryUse(Owned):
    """A time that a note came up: beside which `question`, in which conversation, and why.

    Of each note the newest are kept (`uses.KEPT`). `message_id` is the user's message in the conversation.
    """

    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, db_index=False, related_name="uses")
    used_in = models.CharField(max_length=16, choices=UsedIn)
    question = models.CharField(max_length=MAX_QUESTION_CHARS, blank=True, default="")
    reason = models.CharField(max_length=MAX_WHY_CHARS, blank=True, default="")
    conversation_id = models.UUIDField(null=True, blank=True)
    message_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["memory", "-id"], name="memory_use_newest"),
            models.Index(
                fields=["conversation_id"],
                name="memory_use_conversation",
                condition=models.Q(conversation_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"use of {self.memory_id}"
