"""Invented people, what an assistant knows of them, what they say to it, and what should come to mind then.

The people stand in `people/`, in sets. Of seven, what they say teaches concern as well, unless the person is judged: the first three, written
apart, without sight of the program or of each other, of which the third was asked once, as `unseen`, before it did; the fourth, whose
writer knew the program and the other sets; the fifth, the sixth and the eighth, whose writers were told what such a set is and had seen
nothing else, and which were asked before they served. Nothing of the others is among the messages that teach concern: the seventh by two
more such writers, the ninth, the tenth and the eleventh by two others each (the eleventh's people who do not speak English by one writer
for each language), the twelfth in the eleventh's way, the thirteenth by five writers of two people each, in English alone. Each was
asked before anything was fitted to it, or chosen by it. The fourteenth, in the thirteenth's way, was written after the second step of
the odds had first been fitted, to all the others; it was asked of that and, as docs/search.md tells, of two fits after it. The fifteenth, in
the same way again, was written while `mpnet` was being taught, when the fourteenth alone had been asked of that encoder as it came. The
sixteenth, in the same way, was written before `minilm` was taught for the second time, and asked of it afterwards.
The occasions beside all but the fourth are what a model gave, one note at a time, to a prompt that asks what
`apps/memory/prompts/occasions.md` asks; it saw no message. Those of the fourth were written note by note, before its messages.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from apps.memory.models import Memory
from apps.memory.notes.creation import memory_bulk_create
from apps.search.text.analysis import split_words, stems, stop_words
from benchmarks._scratch import make_user

FOLDER = Path(__file__).parent / "people"
TUNED = ("tuning", "held_back", "unseen", "fourth", "fifth", "sixth", "eighth")
UNFITTED = ("sixteenth", "fifteenth", "fourteenth")
"""Sets to which nothing is fitted."""
ASKED = (*UNFITTED, "thirteenth", "twelfth", "eleventh", "tenth", "ninth", "seventh")
"""Sets of which nothing is among the example messages."""
KINDS = ("direct", "paraphrased", "oblique", "follow-up", "idle")


@dataclass(frozen=True, slots=True)
class Known:
    """A note: what the assistant knows, since when, and what a model said of when it matters."""

    key: str
    text: str
    written: datetime
    kind: str
    importance: int
    tags: tuple[str, ...]
    occasions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A talk, oldest first, and the notes that its last message should bring up; those of `fitting` do no harm."""

    kind: str
    talk: tuple[str, ...]
    wanted: frozenset[str]
    fitting: frozenset[str]


@dataclass(frozen=True, slots=True)
class Person:
    key: str
    language: str
    notes: tuple[Known, ...]
    messages: tuple[Said, ...]


def people(name: str) -> list[Person]:
    """The people of a set."""
    given = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))["people"]
    occasions = json.loads((FOLDER / f"{name}_occasions.json").read_text(encoding="utf-8"))
    return [_person(one, occasions[one["key"]]) for one in given]


def _person(given: Mapping[str, Any], occasions: Mapping[str, Sequence[str]]) -> Person:
    notes = tuple(
        Known(
            one["key"],
            one["text"],
            datetime.fromisoformat(one["date"]).replace(tzinfo=UTC),
            one["kind"],
            one["importance"],
            tuple(one["tags"]),
            tuple(occasions[one["key"]]),
        )
        for one in given["notes"]
    )
    messages = tuple(
        Said(one["kind"], tuple(one["talk"]), frozenset(one["wanted"]), frozenset(one["fitting"]))
        for one in given["messages"]
    )
    return Person(given["key"], given["language"], notes, messages)


def kind_of(said: Said, person: Person) -> str:
    """`oblique` shares no content stem with the notes it wants, their tags or occasions, `paraphrased` none with the notes.

    English alone is judged; other kinds are what their writers call them.
    """
    if person.language != "en" or said.kind not in ("paraphrased", "oblique"):
        return said.kind
    wanted = [note for note in person.notes if note.key in said.wanted]
    told = content_stems([said.talk[-1]], person.language)
    if told & content_stems((note.text for note in wanted), person.language):
        return "direct"
    around = [text for note in wanted for text in (*note.tags, *note.occasions)]
    shared = told & content_stems(around, person.language)
    return "paraphrased" if shared else said.kind


def content_stems(texts: Iterable[str], language: str) -> set[str]:
    """The stems of texts without the function words of their language."""
    words = [word for text in texts for word in split_words(text) if word not in stop_words(language)]
    return set(stems(words, language))


@dataclass(frozen=True, slots=True)
class Holder:
    """A user who has a person's notes."""

    user_id: UUID
    ids: Mapping[str, UUID]

    def keys(self, ids: Iterable[UUID]) -> set[str]:
        names = {note_id: key for key, note_id in self.ids.items()}
        return {names[note_id] for note_id in ids}


def holder_of(person: Person, name: str, given: bool) -> Holder:
    """A new user with a person's notes, as old as they are, with the occasions `given` by a model, else those made by rule."""
    user = make_user(f"{name}-{person.key}")
    drafts: Any = [
        {
            "content": note.text,
            "importance": note.importance,
            "kind": note.kind,
            "tags": list(note.tags),
            "tier": "long_term",
        }
        | ({"occasions": list(note.occasions)} if given else {})
        for note in person.notes
    ]
    made = memory_bulk_create(user_id=user.pk, drafts=drafts)
    rows = Memory.objects.owned_by(user.pk)
    for note, row in zip(person.notes, made, strict=True):
        rows.filter(pk=row.pk).update(created_at=note.written, updated_at=note.written)
    return Holder(user.pk, {note.key: row.pk for note, row in zip(person.notes, made, strict=True)})
