"""Items known already: shown by Izzy itself, said by a note, or settled by one that is not active (any more)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import QuerySet

from apps.memory.models import Memory, Status, Trust
from apps.memory.trust import least_trust

from .candidates import Nearby, Past
from .items import Action, Item
from .similarity import Content, adds_to, content_of, same_content, same_words, says_the_same


@dataclass(slots=True)
class Known:
    """Compares the items of one window with what is known already."""

    user_id: UUID
    past: Sequence[Past]
    shown: Sequence[Content]
    written: dict[int, Memory] = field(default_factory=dict)  # notes that items before gave rise to, by place

    def was_shown(self, item: Item) -> bool:
        """Whether Izzy itself put these words beside the conversation: hearing them again is no news."""
        words = content_of(item.content)
        return any(same_content(words, text) for text in self.shown)

    def same_as(self, item: Item, around: Nearby, *, target: Memory | None, trust: Trust) -> Memory | None:
        """The active note that says the same already, or one that an item before gave rise to."""
        for place, value in enumerate(around.items):
            note = self.written.get(place)
            if note is None or note == target or not says_the_same(item.content, note.content, value):
                continue
            kept = self._living().filter(pk=note.pk).first()
            if kept and not (kept.status == Status.PENDING and _outranks(trust, kept.trust)):
                return kept
        near = self._living().filter(pk__in=[key for key, _ in around.notes], status=Status.ACTIVE)
        by_id = {note.pk: note for note in near}
        for key, value in around.notes:
            found = by_id.get(key)
            if found is not None and _says(found, item, value, is_target=found == target):
                return found
        return None

    def past_reason(self, item: Item, trust: Trust, said_at: datetime) -> str | None:
        """Why an item that says what a note said that is not active must not come back; None where it may.

        A note that waits is not proposed again, unless the words are trusted more by now. What was superseded, put
        away or deleted comes back only when it is said anew afterwards by the user, and a superseded text only where
        the model says what it replaces.
        """
        words = content_of(item.content)
        for note in self.past:
            if not same_content(words, note.content):
                continue
            if note.status == Status.PENDING:
                if not _outranks(trust, note.trust):
                    return "waits_for_review"
            elif said_at <= note.ended or trust == Trust.UNTRUSTED:
                return f"was_{note.status}"
            elif (
                note.status == Status.SUPERSEDED and item.action == Action.ADD and self._successor_holds(note)
            ):
                return "was_superseded"
        return None

    def _successor_holds(self, note: Past) -> bool:
        if note.superseded_by is None:
            return False
        return self._living().filter(pk=note.superseded_by, status=Status.ACTIVE).exists()

    def _living(self) -> QuerySet[Memory]:
        return Memory.objects.owned_by(self.user_id).filter(status__in=[Status.ACTIVE, Status.PENDING])


def _says(note: Memory, item: Item, value: float, *, is_target: bool) -> bool:
    """Of the note that an item means to change, only its words can say that there is nothing to change."""
    if is_target:
        return same_words(item.content, note.content) and not adds_to(item.content, note.content)
    return says_the_same(item.content, note.content, value)


def _outranks(trust: Trust, other: Trust | str) -> bool:
    """Whether words are trusted more than others."""
    return trust != Trust(other) and least_trust(trust, other) == Trust(other)
