"""How notes of a file are taken in: with their revisions, indexed for search as they are written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.accounts.selectors import preferences_for
from apps.core.db.writing import insert_all
from apps.core.text import fold
from apps.core.transfer import (
    CHANGED,
    DELETED,
    GONE,
    KNOWN,
    Entry,
    Ids,
    Taking,
    Write,
    derived_id,
    ids_here,
    shaped,
    write_nothing,
)
from apps.memory.models import (
    DecayCycle,
    Memory,
    MemoryRevision,
    OccasionsWait,
    Origin,
    Proposal,
    ReviewReason,
    Status,
    Tier,
    Trust,
)
from apps.memory.notes.creation import documents_of, documents_with_past, occasions_made
from apps.memory.notes.fields import TIER_DEFAULTS, folded
from apps.memory.notes.history import SEARCHABLE
from apps.memory.notes.revisions import MAX_REVISIONS
from apps.memory.notes.selectors import current_cycle
from apps.search.documents import Document, Facet
from apps.search.services import documents_index, documents_prepare

from .note_records import DecayRecord, NoteRecord, RevisionRecord, StateRecord
from .records import ForeignNote

MOVED = "It was deleted."


def notes_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans decay clocks, notes with their revisions, and notes of foreign files."""
    own = [entry for entry in entries if entry.kind == "note"]
    foreign = [entry for entry in entries if entry.kind == "foreign_note"]
    given = [*shaped(taking, own, NoteRecord), *_foreign(taking, foreign)]
    former = shaped(taking, [entry for entry in entries if entry.kind == "revision"], RevisionRecord)
    clock = shaped(taking, [entry for entry in entries if entry.kind == "decay"], DecayRecord)
    cycle = _clock(taking, clock)
    made = _Batch(taking, given, former).made(
        cycle if cycle is not None else current_cycle(taking.user_id)
    )
    if not made and cycle is None:
        return write_nothing
    documents = [document for new in made for document in new.documents()]
    of_texts = [document.text for document in documents if document.facet is Facet.TEXT]
    phrases = [
        line
        for document in documents
        if document.facet is Facet.OCCASIONS
        for line in document.text.splitlines()
    ]
    documents_prepare(user_id=taking.user_id, texts=of_texts, occasions=phrases)

    def write() -> None:
        if cycle is not None:
            DecayCycle.objects.update_or_create(user_id=taking.user_id, defaults={"cycle": cycle})
        insert_all([new.note for new in made])
        insert_all([row for new in made for row in new.revisions])
        documents_index(user_id=taking.user_id, documents=documents, are_new=True)

    return write


def _clock(taking: Taking, clock: Sequence[tuple[Entry, DecayRecord]]) -> int | None:
    """The cycle that the user's clock is put to: an account without notes takes over that of the file."""
    if not clock or not taking.own or Memory.everything.filter(user_id=taking.user_id).exists():
        return None
    cycle = clock[-1][1].cycle
    return cycle if cycle > current_cycle(taking.user_id) else None


@dataclass(slots=True)
class _New:
    """A note that is to be written, with its revisions in their order."""

    note: Memory
    revisions: list[MemoryRevision] = field(default_factory=list)

    def documents(self) -> list[Document]:
        if self.note.status not in SEARCHABLE:
            return []
        return (
            documents_with_past(self.note, self.revisions) if self.revisions else documents_of(self.note)
        )


@dataclass(slots=True)
class _Batch:
    """Notes of a file, checked, and what was there before."""

    taking: Taking
    given: Sequence[tuple[Entry, NoteRecord]]
    former: Sequence[tuple[Entry, RevisionRecord]]

    def made(self, cycle: int) -> list[_New]:
        """The new notes; of the others the report says what became of them."""
        taking = self.taking
        keys = {
            key
            for _, record in self.given
            for key in (record.id, record.superseded_by, record.proposed_target)
        }
        keys |= {key for _, row in self.former for key in _named(row)}
        ids = ids_here(taking, "note", keys)
        said = _said_already(
            taking, [record for entry, record in self.given if entry.kind == "foreign_note"]
        )
        there = _there(taking.user_id, [ids[record.id] for _, record in self.given])
        sources = [
            ids_here(taking, kind, {getattr(record, name) for _, record in self.given})
            for kind, name in (("conversation", "source_conversation"), ("message", "source_message"))
        ]
        made: dict[UUID, _New] = {}
        language = preferences_for(taking.user_id).language
        for entry, record in self.given:
            key = ids[record.id]
            if record.status == Status.DELETED:
                taking.report.skip(entry, MOVED)
            elif key in made or key in taking.fresh:
                taking.report.skip(entry, KNOWN)
            elif key in there:
                said_there = there[key]
                same = KNOWN if said_there == _words(record) else CHANGED
                taking.report.skip(entry, same if said_there else DELETED)
            elif entry.kind == "foreign_note" and fold(record.content) in said:
                taking.report.merge(entry.kind)
            else:
                made[key] = _New(_note(taking, record, key, ids, sources, cycle, language))
                said.add(fold(record.content))
                taking.report.take(entry.kind)
        self._point(made, ids)
        self._revise(made, ids)
        taking.fresh |= made.keys()
        return list(made.values())

    def _point(self, made: Mapping[UUID, _New], ids: Ids) -> None:
        """Has new notes point to others, at once to those before them in the file, else when it has ended."""
        for _, record in self.given:
            new = made.get(ids[record.id])
            if new is None:
                continue
            wanted = {"superseded_by": record.superseded_by}
            if self.taking.own:
                wanted["proposed_target"] = record.proposed_target
            for name, target in wanted.items():
                if target is None or ids[target] == new.note.pk:
                    continue
                if ids.known(target) or ids[target] in made:
                    setattr(new.note, f"{name}_id", ids[target])
                else:
                    late = {
                        "kind": "note",
                        "note": str(new.note.pk),
                        "field": name,
                        "target": str(target),
                    }
                    self.taking.later.append(late)

    def _revise(self, made: Mapping[UUID, _New], ids: Ids) -> None:
        """Gives new notes their revisions; those that are here keep their own."""
        report, seen = self.taking.report, set()
        for entry, record in sorted(self.former, key=lambda each: each[1].version):
            new = made.get(ids[record.note])
            if new is None:
                report.skip(entry, KNOWN if ids.known(record.note) else GONE)
            elif (new.note.pk, record.version) in seen or len(new.revisions) >= MAX_REVISIONS:
                report.skip(entry, KNOWN)
            else:
                seen.add((new.note.pk, record.version))
                new.revisions.append(_revision(self.taking, entry, record, new.note, ids))
                report.take("revision")


def _named(row: RevisionRecord) -> Iterator[UUID]:
    """The notes that a revision names."""
    change = row.state.change
    yield row.note
    yield from filter(
        None, [row.state.superseded_by, change and change.by, change and change.instead_of]
    )
    yield from (change and change.merged) or ()


def _revision(
    taking: Taking, entry: Entry, record: RevisionRecord, note: Memory, ids: Ids
) -> MemoryRevision:
    names = StateRecord.model_fields
    state = {name: value for name, value in entry.value["state"].items() if name in names}
    instead = record.state.superseded_by
    state["superseded_by"] = str(ids[instead]) if instead else None
    if (change := record.state.change) is None:
        state.pop("change", None)
    else:
        given = state["change"]  # in its order: what is taken out again is the same to the byte
        facts = {name: getattr(change, name) for name in given if name in change.model_fields_set}
        for name in ("by", "instead_of"):
            if facts.get(name):
                facts[name] = str(ids[facts[name]])
        if change.merged:
            facts["merged"] = [str(ids[key]) for key in change.merged]
        state["change"] = facts
    values = record.columns(MemoryRevision) | {"state": state}
    if not taking.own:
        state |= {"trust": str(note.trust), "occasions": [], "occasions_by": ""}
        values["actor"] = Origin.IMPORT
    return MemoryRevision(user_id=taking.user_id, memory_id=note.pk, **values)


def _foreign(taking: Taking, entries: Sequence[Entry]) -> list[tuple[Entry, NoteRecord]]:
    """Notes of foreign files as records of our own."""
    rows = []
    for entry in entries:
        note: ForeignNote = entry.value
        given = {
            "id": str(derived_id(taking.user_id, taking.format, "note", note.key)),
            "content": note.content,
            "tags": list(note.tags),
            "category": note.category,
            "occasions": list(note.occasions) or None,
            "status": "archived" if note.archived else "active",
            **{
                name: value
                for name in (
                    *("kind", "importance", "tier"),
                    *("created_at", "updated_at", "valid_from", "valid_to"),
                )
                if (value := getattr(note, name)) is not None
            },
        }
        rows.append(Entry(entry.kind, given, entry.place, entry.line))
    return shaped(taking, rows, NoteRecord)


def _note(
    taking: Taking,
    record: NoteRecord,
    key: UUID,
    ids: Ids,
    sources: Sequence[Ids],
    cycle: int,
    language: str,
) -> Memory:
    """The row of a new note; others' words wait for review, and what says when they matter counts for nothing."""
    values: dict[str, Any] = {
        name: getattr(record, name)
        for name in (
            "content",
            "tier",
            "kind",
            "importance",
            "tags",
            "category",
            "status",
            "valid_from",
            "valid_to",
        )
    }
    priority, decay_rate = TIER_DEFAULTS[Tier(record.tier)]
    rate = decay_rate if record.decay_rate is None else record.decay_rate
    level = priority if record.priority is None else record.priority
    written = cycle - record.turns
    if written < 0:  # its account had more turns than this one
        level, written = max(0.0, level - rate * record.turns), cycle
    values |= {"priority": level, "decay_rate": rate, "priority_cycle": written}
    values |= _standing(taking, record)
    values |= _occasions(taking, record, values, language)
    conversation, message = record.source_conversation, record.source_message
    created, updated = record.created_at or record.updated_at, record.updated_at or record.created_at
    if record.status == Status.SUPERSEDED and record.valid_to is None:  # or it would hold still
        values["valid_to"] = _passed(taking, updated)
    return Memory(
        id=key,
        user_id=taking.user_id,
        source_conversation_id=sources[0][conversation] if conversation else None,
        source_message_id=sources[1][message] if message else None,
        created_at=_passed(taking, created),
        updated_at=_passed(taking, updated),
        last_accessed=record.last_accessed,
        access_count=record.access_count,
        use_count=record.use_count,
        **values,
        **folded(values),
    )


def _passed(taking: Taking, moment: datetime | None) -> datetime:
    """When something was done that a file tells of: not ahead, as by a clock or a time zone that is not the user's."""
    return min(moment or taking.now, taking.now)


def _standing(taking: Taking, record: NoteRecord) -> dict[str, Any]:
    """The trust that a note gets, and whether it waits."""
    if taking.own:
        names = ("origin", "trust", "review_reason", "proposed_action", "proposed_fields")
        return {name: getattr(record, name) for name in names}
    values = {"origin": Origin.IMPORT, "trust": Trust.USER if taking.accept else Trust.UNTRUSTED}
    waiting = record.status in {Status.ACTIVE, Status.PENDING}
    if taking.accept or not waiting:
        return values | ({"status": Status.ACTIVE} if waiting else {})
    return values | {
        "status": Status.PENDING,
        "review_reason": ReviewReason.UNTRUSTED,
        "proposed_action": Proposal.ADD,
    }


def _occasions(
    taking: Taking, record: NoteRecord, values: Mapping[str, Any], language: str
) -> dict[str, Any]:
    if not taking.own or (record.occasions is None and record.occasions_open):
        given = {**values, "occasions": record.occasions if taking.trusted else None}
        return occasions_made(given, typed=False, trust=Trust(values["trust"]), language=language)
    waits = record.occasions_open
    return {
        "occasions": record.occasions or [],
        "occasions_by": record.occasions_by,
        "occasions_wait": OccasionsWait.MODEL if waits else OccasionsWait.NONE,
        "occasions_due": taking.now,
    }


def _words(record: NoteRecord) -> tuple[str, list[str], str]:
    return record.content, record.tags, record.category


def _there(user_id: UUID, keys: Sequence[UUID]) -> dict[UUID, tuple[str, list[str], str] | None]:
    """The contents of the user's notes of these ids, None of deleted ones."""
    rows = Memory.everything.filter(pk__in=keys).values_list(
        "pk", "user_id", "content", "tags", "category", "deleted_at"
    )
    return {
        key: None if deleted else (said, tags, category)
        for key, owner, said, tags, category, deleted in rows
        if owner == user_id
    }


def _said_already(taking: Taking, records: Sequence[NoteRecord]) -> set[str]:
    """Those of the texts, folded, that a note of the user says already."""
    texts = {fold(record.content) for record in records}
    if not texts:
        return set()
    rows = Memory.objects.for_user(taking.user_id).filter(folded_content__in=texts)
    return set(rows.exclude(status=Status.SUPERSEDED).values_list("folded_content", flat=True))


def notes_settle(taking: Taking, late: Sequence[dict[str, Any]]) -> Write:
    """Plans what new notes point to that came after them; what did not come is left out."""
    ids = ids_here(taking, "note", {UUID(each["target"]) for each in late})
    pointed = [
        (UUID(each["note"]), {f"{each['field']}_id": ids[target]})
        for each in late
        if ids.known(target := UUID(each["target"]))
    ]

    def write() -> None:
        for key, values in pointed:
            Memory.everything.filter(pk=key, user_id=taking.user_id).update(**values)

    return write
