"""From checked items to notes: all of a window's results in one transaction with marking it read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.agent.model.client import Usage
from apps.core.errors import IzzyError
from apps.memory.models import Action as NoteAction
from apps.memory.models import CaptureWindow, GateVerdict, Memory, Origin, Relation, Status, Trust
from apps.memory.notes.creation import memory_submit, status_for
from apps.memory.notes.fields import STANDING
from apps.memory.notes.joining import edge_create, memory_absorb, memory_supersede, supersede_with
from apps.memory.notes.revisions import Change, Provenance
from apps.memory.similarity import Content, adds_to
from apps.memory.trust import judged_among, least_trust

from .candidates import Known, Nearby, Past
from .items import COUNTS, Action, Dropped, Item, Outcome
from .leases import LeasedWindow, usage_count, window_done, window_locked
from .segments import Segment


def judged_item(item: Item, segments: Sequence[Segment], *, tainted: bool) -> tuple[Item, Trust]:
    """An item as it may be kept, and how far it is trusted: computed from the words it rests on, never taken from the model.

    Where others' words were read it is the user's where it says one whole sentence of what it cites of them, else
    untrusted; what labels it is judged alike. Elsewhere it is trusted as the least of the segments that it cites, or of all.
    """
    cited = [segments[place] for place in item.evidence] or segments
    if not tainted:
        return item, least_trust(Trust.USER, *(segment.trust for segment in cited))
    own = [segment.text for segment in cited if segment.trust == Trust.USER and segment.whole]
    judged = judged_among(own, item.content, {"tags": list(item.tags)})
    trust = Trust.UNTRUSTED if judged.trust == Trust.UNTRUSTED else Trust.USER
    return replace(item, tags=tuple(judged.fields["tags"]), standing=False), trust


@dataclass(frozen=True, slots=True)
class Statement:
    """An item with what it rests on in its window: the segments it cites, or all where it cites none."""

    item: Item
    user_id: UUID
    conversation_id: UUID
    trust: Trust
    cited: Sequence[Segment]

    @classmethod
    def of(cls, item: Item, window: LeasedWindow) -> "Statement":
        item, trust = judged_item(item, window.segments, tainted=window.tainted)
        return cls(
            item=item,
            user_id=window.user_id,
            conversation_id=window.conversation_id,
            trust=trust,
            cited=[window.segments[place] for place in item.evidence] or window.segments,
        )

    @property
    def is_read_before(self) -> bool:
        """Whether it rests on nothing but what the window before held."""
        return bool(self.item.evidence) and all(segment.seen for segment in self.cited)

    @property
    def said_at(self) -> datetime:
        return max(segment.said_at for segment in self.cited)

    @property
    def messages(self) -> set[UUID]:
        return {segment.message for segment in self.cited}

    @property
    def source_message(self) -> UUID:
        """The message that a note made of it names as its source."""
        fresh = [segment for segment in self.cited if not segment.seen]
        return (fresh or self.cited)[0].message

    @property
    def valid_from(self) -> datetime:
        """Since when it is true: what was said, else when it was said; never ahead, or search would not find it yet."""
        now, told = timezone.now(), self.item.valid_from
        return min(told if told and told <= now else self.said_at, now)

    @property
    def provenance(self) -> Provenance:
        return Provenance(
            origin=Origin.EXTRACTION,
            trust=self.trust,
            conversation_id=self.conversation_id,
            message_id=self.source_message,
        )

    def change(self, reason: str) -> Change:
        return Change(
            actor=Origin.EXTRACTION,
            reason=reason,
            trust=self.trust,
            sensitive=self.item.sensitive,
            conversation_id=self.conversation_id,
            message_id=self.source_message,
        )


MAX_LINKS = 3
LINK_FROM = 0.5
"""Calibrated similarity from which on a new note is linked to a neighbour."""


def is_older(statement: Statement, note: Memory) -> bool:
    """Whether it was said before what the note says held."""
    return statement.said_at < (note.valid_from or note.created_at)


def say_again(note: Memory, statement: Statement, outcome: Outcome) -> Memory | None:
    """A note that says the same already takes in what the statement says more, and the weight of being said again.

    A note weighs more when the user says it another time, not by Izzy's echo, nor by the very message that it was saved
    from during the turn.
    """
    if note.status == Status.PENDING:
        outcome.skip("waits_for_review")
        return None
    item, trust = statement.item, statement.trust
    richer = adds_to(item.content, note.content)
    if not richer and (trust != Trust.USER or note.source_message_id in statement.messages):
        outcome.skip("known")
        return None
    kept = memory_absorb(
        user_id=note.user_id,
        memory_id=note.pk,
        content=item.content if richer else None,
        trust=trust,
        tags=item.tags,
        change=statement.change("said again"),
    )
    return _counted(kept, "merged", outcome)


def give_way(old: Memory, same: Memory, statement: Statement, outcome: Outcome) -> None:
    """A superseded note gives way to the note that says it already, unless the user has to see that first."""
    status, _ = status_for(user_id=old.user_id, trust=statement.trust, sensitive=statement.item.sensitive)
    if {same.status, status} != {Status.ACTIVE} or is_older(statement, old):
        return
    change = statement.change("another note says what holds now")
    supersede_with(old, same, at=statement.said_at, action=NoteAction.SUPERSEDED, change=change)
    outcome.superseded += 1
    outcome.memory_ids.append(old.pk)


def statement_write(statement: Statement, target: Memory | None, around: Nearby, outcome: Outcome) -> Memory:
    """A new note, alone or in the place of `target`; or, for an update, a new text of the target."""
    if target is not None and statement.item.action == Action.UPDATE:
        return _counted(_updated(target, statement), "merged", outcome)
    if target is not None:
        note = _counted(_superseding(target, statement), "superseded", outcome)
    else:
        note = _counted(_new(statement), "added", outcome)
    if note.status == Status.ACTIVE:
        _link(note, around)
    return note


def _updated(target: Memory, statement: Statement) -> Memory:
    item = statement.item
    return memory_absorb(
        user_id=statement.user_id,
        memory_id=target.pk,
        content=item.content,
        trust=statement.trust,
        importance=item.importance,
        tags=item.tags,
        change=statement.change("more was said about it"),
    )


def _superseding(target: Memory, statement: Statement) -> Memory:
    return memory_supersede(
        user_id=statement.user_id,
        memory_id=target.pk,
        content=statement.item.content,
        provenance=statement.provenance,
        change=statement.change("something else was said"),
        **_fields(statement),
    )


def _new(statement: Statement) -> Memory:
    return memory_submit(
        user_id=statement.user_id,
        content=statement.item.content,
        provenance=statement.provenance,
        sensitive=statement.item.sensitive,
        **_fields(statement),
    )


def _fields(statement: Statement) -> Any:
    """The fields of a new note; an end that lies before its beginning is left out."""
    item, start = statement.item, statement.valid_from
    return {
        "kind": item.kind,
        "importance": item.importance,
        "tags": list(item.tags),
        "tier": item.tier,
        **({"category": STANDING} if item.standing else {}),
        "valid_from": start,
        "valid_to": item.valid_to if item.valid_to and item.valid_to > start else None,
    }


def _link(note: Memory, around: Nearby) -> None:
    """Ties a new note to its nearest neighbours."""
    near = [(key, value) for key, value in around.notes if value >= LINK_FROM and key != note.pk]
    near = near[:MAX_LINKS]
    active = Memory.objects.owned_by(note.user_id).filter(status=Status.ACTIVE)
    living = set(active.filter(pk__in=[key for key, _ in near]).values_list("pk", flat=True))
    for key, value in near:
        if key in living:
            edge_create(
                user_id=note.user_id,
                source_id=note.pk,
                target_id=key,
                relation=Relation.RELATED,
                weight=round(value, 3),
            )


def _counted(note: Memory, name: str, outcome: Outcome) -> Memory:
    """Counts what became of a statement; what waits for the user is counted as that."""
    name = "pending" if note.status == Status.PENDING else name
    setattr(outcome, name, getattr(outcome, name) + 1)
    outcome.memory_ids.append(note.pk)
    return note


@transaction.atomic
def window_apply(
    leased: LeasedWindow,
    *,
    items: Sequence[Item],
    near: Sequence[Nearby],
    past: Sequence[Past],
    shown: Sequence[Content],
    dropped: Sequence[Dropped],
    usage: Usage,
) -> Outcome | None:
    """Writes what a window's items say and marks it read; None where the window was changed or withdrawn meanwhile.

    Raises LeaseLost. Either all of it happens or nothing does, but that an item which cannot be written is dropped.
    """
    window = window_locked(leased)
    if window is None:
        return None
    total = Outcome(dropped=list(dropped))
    applying = _Applying(leased, Known(leased.user_id, past, shown))
    for place, (item, around) in enumerate(zip(items, near, strict=True)):
        outcome = Outcome()
        try:
            with transaction.atomic():
                note = applying.take(item, around, outcome)
        except IzzyError as error:
            total.dropped.append(Dropped(error.code, str(error.extra.get("field", ""))))
            continue
        total.add(outcome)
        if note is not None:
            applying.known.written[place] = note
    _store(window, total, usage)
    return total


def _store(window: CaptureWindow, outcome: Outcome, usage: Usage) -> None:
    for name in COUNTS:
        setattr(window, name, getattr(outcome, name))
    window.gate = GateVerdict.PASSED
    window.dropped = [reason.to_json() for reason in outcome.dropped]
    window.memory_ids = list(dict.fromkeys(str(value) for value in outcome.memory_ids))
    usage_count(window, usage)
    window_done(window)


@dataclass(frozen=True, slots=True)
class _Applying:
    """Applies the items of one window."""

    leased: LeasedWindow
    known: Known

    def take(self, item: Item, around: Nearby, outcome: Outcome) -> Memory | None:
        """Does what an item asks for, as far as it brings anything new; returns the note that holds it now."""
        statement = Statement.of(item, self.leased)
        if item.action == Action.SKIP:
            outcome.skip("known")
        elif statement.is_read_before:
            outcome.skip("read_before")
        elif item.action != Action.SUPERSEDE and self.known.was_shown(item):
            outcome.injected_again += 1
        else:
            return self._compared(statement, around, outcome)
        return None

    def _compared(self, statement: Statement, around: Nearby, outcome: Outcome) -> Memory | None:
        item, trust = statement.item, statement.trust
        target = self._target(item)
        same = self.known.same_as(item, around, target=target, trust=trust)
        reason = self.known.past_reason(item, trust, statement.said_at)
        if self.leased.tainted and STANDING in {note.category for note in (same, target) if note}:
            # It stands in every conversation: the user has to see what it will say.
            statement = replace(statement, trust=Trust.UNTRUSTED)
        if same is not None and not (reason and trust == Trust.UNTRUSTED):
            kept = say_again(same, statement, outcome)
            if target is not None and target != same and item.action == Action.SUPERSEDE:
                give_way(target, same, statement, outcome)
            return kept
        if reason is not None:
            outcome.skip(reason)
        elif target is not None and is_older(statement, target):
            outcome.skip("older_than_note")
        else:
            return statement_write(statement, target, around, outcome)
        return None

    def _target(self, item: Item) -> Memory | None:
        """The active note that an item means to change or to replace."""
        if item.target is None or item.action == Action.ADD:
            return None
        notes = Memory.objects.for_user(self.leased.user_id).select_for_update()
        return notes.filter(pk=item.target, status=Status.ACTIVE).first()
