"""Short names of notes in one conversation, by which its model refers to what was put beside a message."""

from django.db import models

from .base import Owned
from .notes import Memory


class NoteHandle(Owned):
    """A note's number in a conversation: 7 is `n7` there.

    Numbers count up and are never given twice. The row of a note that is purged stays without its id, so that its number
    does not come to stand for another.
    """

    conversation_id = models.UUIDField()
    number = models.PositiveIntegerField()
    memory = models.ForeignKey(
        Memory, on_delete=models.SET_NULL, null=True, db_index=False, related_name="+"
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["user", "conversation_id", "number"], name="note_handle_number"
            ),
            models.UniqueConstraint(fields=["memory", "conversation_id"], name="note_handle_note"),
        ]

    def __str__(self) -> str:
        return f"n{self.number} in {self.conversation_id}"
