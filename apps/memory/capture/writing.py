"""From checked items to notes: all of a window's results in one transaction with marking it read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone

from apps.agent.model.client import Usage
from apps.core.errors import IzzyError
from apps.memory.models import STANDING, GateVerdict, Memory, Origin, Relation, Status, Trust
from apps.memory.notes.creation import memory_submit, status_for
from apps.memory.notes.joining import edge_create, memory_absorb, memory_supersede, supersede_with
from apps.memory.notes.revisions import Change
from apps.memory.similarity import adds_to, near_notes
from apps.memory.trust import least_trust, note_judged
from apps.search.selectors import likenesses

from .candidates import Alike, Known
from .items import COUNTS, Action, CaptureCounts, Dropped, Item
from .leases import LeasedWindow, usage_count, window_done, window_locked
from .windows import Segment

MAX_LINKS = 3
LINK_FROM = 0.5
"""Calibrated similarity from which on a new note is linked to a neighbour."""


def judged_item(item: Item, segments: Sequence[Segment], *, tainted: bool) -> tuple[Item, Trust]:
    """An item as it may be kept, and how far it is trusted: computed from the words it rests on, never taken from the model.

    Where others' words were read it is the user's where it says one whole sentence of what it cites of them, else
    untrusted; what labels it is judged alike, and its occasions are left out, to be made of its text alone. Elsewhere it
    is trusted as the least of the segments that it cites, or of all.
    """
    cited = [segments[place] for place in item.evidence] or segments
    if not tainted:
        return item, least_trust(Trust.USER, *(segment.trust for segment in cited))
    own = [segment.text for segment in cited if segment.trust == Trust.USER and segment.whole]
    judged = note_judged(own, item.content, {"tags": list(item.tags)})
    trust = Trust.UNTRUSTED if judged.trust == Trust.UNTRUSTED else Trust.USER
    return replace(item, tags=tuple(judged.fields["tags"]), occasions=(), standing=False), trust


@dataclass(frozen=True, slots=True)
class Statement:
    """An item with what it rests on in its window: the segments it cites, or all where it cites none."""

    item: Item
    window: LeasedWindow
    trust: Trust
    cited: Sequence[Segment]
    near: Alike
    among: Sequence[float]  # its similarity with the items before it

    @classmethod
    def of(cls, item: Item, window: LeasedWindow, among: Sequence[float]) -> "Statement":
        """Asks the embedder: call it outside of a transaction."""
        near = near_notes(window.user_id, item.content)
        item, trust = judged_item(item, window.segments, tainted=window.tainted)
        cited = [window.segments[place] for place in item.evidence] or window.segments
        return cls(item, window, trust, cited, near, among)

    @property
    def said_at(self) -> datetime:
        return max(segment.said_at for segment in self.cited)

    def change(self, reason: str = "") -> Change:
        fresh = [segment for segment in self.cited if not segment.seen]
        return Change(
            actor=Origin.EXTRACTION,
            reason=reason,
            trust=self.trust,
            sensitive=self.item.sensitive,
            conversation_id=self.window.conversation_id,
            message_id=(fresh or self.cited)[0].message,
        )

    def is_older(self, note: Memory) -> bool:
        """Whether it was said before what the note says held."""
        return self.said_at < (note.valid_from or note.created_at)

    def absorbed_by(self, note: Memory, reason: str, **values: Any) -> Memory:
        """Lets a note take in what is said, in its text where `content` is given, and its tags."""
        return memory_absorb(
            user_id=note.user_id,
            memory_id=note.pk,
            tags=self.item.tags,
            occasions=self.item.occasions,
            change=self.change(reason),
            **values,
        )

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of a new note. It is true since what was said, else since it was said, but never ahead, or search would
        not find it yet; an end that lies before its beginning is left out."""
        item, now = self.item, timezone.now()
        named = item.valid_from
        start = min(named if named and named <= now else self.said_at, now)
        return {
            "kind": item.kind,
            "importance": item.importance,
            "tags": list(item.tags),
            "occasions": list(item.occasions),
            "tier": item.tier,
            **({"category": STANDING} if item.standing else {}),
            "valid_from": start,
            "valid_to": item.valid_to if item.valid_to and item.valid_to > start else None,
        }


def items_apply(
    window: LeasedWindow, items: Sequence[Item], dropped: Sequence[Dropped], usage: Usage
) -> CaptureCounts | None:
    """Writes what a window's items say and marks it read; None where the window was changed or withdrawn meanwhile.

    Raises LeaseLost. Either all of it happens or nothing does, but that an item which cannot be written is dropped.
    """
    among = likenesses([item.content for item in items])
    statements = [Statement.of(item, window, among[at, :at].tolist()) for at, item in enumerate(items)]
    known = Known.of(window) if items else Known(window.user_id, [], [])
    total = CaptureCounts(dropped=list(dropped))
    with transaction.atomic():
        row = window_locked(window)
        if row is None:
            return None
        for place, statement in enumerate(statements):
            counts = CaptureCounts()
            try:
                with transaction.atomic():
                    note = _take(statement, known, counts)
            except IzzyError as error:
                total.dropped.append(Dropped(error.code, str(error.extra.get("field", ""))))
                continue
            total.add(counts)
            if note is not None:
                known.written[place] = note
        for name in COUNTS:
            setattr(row, name, getattr(total, name))
        row.gate = GateVerdict.PASSED
        row.dropped = [reason.to_json() for reason in total.dropped]
        row.memory_ids = list(dict.fromkeys(str(value) for value in total.memory_ids))
        usage_count(row, usage)
        window_done(row)
    return total


def _take(statement: Statement, known: Known, counts: CaptureCounts) -> Memory | None:
    """Does what an item asks for, as far as it brings anything new; returns the note that holds it now."""
    item = statement.item
    if item.action == Action.SKIP:
        counts.skip("known")
    elif item.evidence and all(segment.seen for segment in statement.cited):
        counts.skip("read_before")  # it rests on nothing but what the window before held
    elif item.action != Action.SUPERSEDE and known.was_shown(item):
        counts.injected_again += 1
    else:
        return _compared(statement, known, counts)
    return None


def _compared(statement: Statement, known: Known, counts: CaptureCounts) -> Memory | None:
    item, trust = statement.item, statement.trust
    target = None  # the active note that the item means to change or to replace
    if item.target is not None and item.action != Action.ADD:
        notes = Memory.objects.for_user(known.user_id).select_for_update()
        target = notes.filter(pk=item.target, status=Status.ACTIVE).first()
    same = known.same_as(item, statement.near, statement.among, target=target, trust=trust)
    reason = known.past_reason(item, trust, statement.said_at)
    if statement.window.tainted and STANDING in {note.category for note in (same, target) if note}:
        # It stands in every conversation: the user has to see what it will say.
        statement = replace(statement, trust=Trust.UNTRUSTED)
    if same is not None and not (reason and trust == Trust.UNTRUSTED):
        kept = _say_again(same, statement, counts)
        if target is not None and target != same and item.action == Action.SUPERSEDE:
            _give_way(target, same, statement, counts)
        return kept
    if reason is not None:
        counts.skip(reason)
    elif target is not None and statement.is_older(target):
        counts.skip("older_than_note")
    else:
        return _write(statement, target, counts)
    return None


def _say_again(note: Memory, statement: Statement, counts: CaptureCounts) -> Memory | None:
    """A note that says the same already takes in what the statement says more, and the weight of being said again.

    A note weighs more when the user says it another time, not by Izzy's echo, nor by the very message that it was saved
    from during the turn.
    """
    if note.status == Status.PENDING:
        counts.skip("waits_for_review")
        return None
    content, messages = statement.item.content, {segment.message for segment in statement.cited}
    richer = adds_to(content, note.content)
    if not richer and (statement.trust != Trust.USER or note.source_message_id in messages):
        counts.skip("known")
        return None
    kept = statement.absorbed_by(note, "said again", content=content if richer else None)
    return _counted(kept, "merged", counts)


def _give_way(old: Memory, same: Memory, statement: Statement, counts: CaptureCounts) -> None:
    """A superseded note gives way to the note that says it already, unless the user has to see that first."""
    status, _ = status_for(
        user_id=old.user_id, trust=statement.trust, sensitive=statement.item.sensitive
    )
    if {same.status, status} != {Status.ACTIVE} or statement.is_older(old):
        return
    change = statement.change("another note says what holds now")
    supersede_with(old, same, at=statement.said_at, change=change)
    counts.superseded += 1
    counts.memory_ids.append(old.pk)


def _write(statement: Statement, target: Memory | None, counts: CaptureCounts) -> Memory:
    """A new note, alone or in the place of `target`; or, for an update, a new text of the target."""
    item, user_id = statement.item, statement.window.user_id
    if target is not None and item.action == Action.UPDATE:
        values = {"content": item.content, "importance": item.importance}
        return _counted(
            statement.absorbed_by(target, "more was said about it", **values), "merged", counts
        )
    if target is not None:
        note = memory_supersede(
            user_id=user_id,
            memory_id=target.pk,
            content=item.content,
            change=statement.change("something else was said"),
            **statement.fields,
        )
    else:
        note = memory_submit(
            user_id=user_id,
            content=item.content,
            change=statement.change(),
            **statement.fields,
        )
    if note.status == Status.ACTIVE:
        _link(note, statement.near)
    return _counted(note, "superseded" if target else "added", counts)


def _link(note: Memory, alike: Alike) -> None:
    """Ties a new note to its nearest neighbours."""
    near = [(key, value) for key, value in alike if value >= LINK_FROM and key != note.pk][:MAX_LINKS]
    active = Memory.objects.owned_by(note.user_id).filter(
        status=Status.ACTIVE, pk__in=[key for key, _ in near]
    )
    living = set(active.values_list("pk", flat=True))
    for key, value in near:
        if key in living:
            edge_create(
                user_id=note.user_id,
                source_id=note.pk,
                target_id=key,
                relation=Relation.RELATED,
                weight=round(value, 3),
            )


def _counted(note: Memory, name: str, counts: CaptureCounts) -> Memory:
    """Counts what became of a statement; what waits for the user is counted as that."""
    name = "pending" if note.status == Status.PENDING else name
    setattr(counts, name, getattr(counts, name) + 1)
    counts.memory_ids.append(note.pk)
    return note
