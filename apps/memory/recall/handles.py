"""Short names (`n7`) of the notes that one conversation has been shown: given in order, resolved there alone."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from django.db import transaction

from apps.memory.models import NoteHandle

_HANDLE = re.compile(r"\[?n(\d{1,9})\]?", re.ASCII)
_ALIKE = re.compile(r"(?<![\w\\])[nN\uff2e\uff4e](?=(\d+)(?!\w))")
_BEFORE = frozenset("[({<|-–—•*·（【")
_AFTER = frozenset("])}>|:=-–—(：）】（")
"""Signs beside a name: in brackets, behind a bullet, before a colon."""


@dataclass(slots=True)
class Numbering:
    """The numbers of a conversation's notes: `known` ones, and those that `take` adds to `new`."""

    known: Mapping[UUID, int]
    last: int = 0
    new: dict[UUID, int] = field(default_factory=dict)

    def handle(self, memory_id: UUID) -> str:
        """The note's short name, or the one that it would get."""
        number = self.known.get(memory_id) or self.new.get(memory_id) or self.last + len(self.new) + 1
        return f"n{number}"

    def take(self, memory_id: UUID) -> None:
        if memory_id not in self.known:
            self.new.setdefault(memory_id, self.last + len(self.new) + 1)


def numbering_of(user_id: UUID, conversation_id: UUID) -> Numbering:
    """The numbers given so far in a conversation of the user."""
    rows = NoteHandle.objects.for_user(user_id).filter(conversation_id=conversation_id)
    given = list(rows.values_list("memory_id", "number"))
    last = max((number for _, number in given), default=0)
    return Numbering({key: number for key, number in given if key is not None}, last)


@transaction.atomic
def handles_keep(*, user_id: UUID, conversation_id: UUID, new: Mapping[UUID, int]) -> None:
    """Stores new numbers. IntegrityError where another process has given one of them meanwhile: nothing is stored then."""
    NoteHandle.objects.bulk_create(
        NoteHandle(user_id=user_id, conversation_id=conversation_id, memory_id=key, number=number)
        for key, number in new.items()
    )


def is_handle(given: str) -> bool:
    """Whether it reads like a short name, in brackets or not."""
    return _HANDLE.fullmatch(given.strip()) is not None


def notes_by_handle(
    user_id: UUID, conversation_id: UUID | None, given: Iterable[str]
) -> dict[str, UUID]:
    """The notes of those of these short names that the conversation has, by the name as it was given."""
    numbers = {name: int(found[1]) for name in given if (found := _HANDLE.fullmatch(name.strip()))}
    if conversation_id is None or not numbers:
        return {}
    rows = NoteHandle.objects.for_user(user_id).filter(
        conversation_id=conversation_id, number__in=set(numbers.values()), memory__isnull=False
    )
    notes = dict(rows.values_list("number", "memory_id"))
    return {name: notes[number] for name, number in numbers.items() if number in notes}


def escaped(text: str) -> str:
    """A note's text with a backslash in whatever stands in it as a short name would: `[n\\7]`, `n\\7: …`."""

    def marked(match: re.Match[str]) -> str:
        before = text[: match.start()].rstrip()[-1:]
        after = text[match.end(1) :].lstrip()[:1]
        stands_as_name = not before or before in _BEFORE or after in _AFTER
        return f"{match[0]}\\" if stands_as_name else match[0]

    return _ALIKE.sub(marked, text)
