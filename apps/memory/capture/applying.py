"""From checked items to notes: all of a window's results in one transaction with marking it read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.agent.client import Usage
from apps.core.errors import IzzyError
from apps.memory import services
from apps.memory.models import Action as NoteAction
from apps.memory.models import CaptureWindow, GateVerdict, Memory, Origin, Relation, Status, Trust
from apps.memory.review.policy import status_for
from apps.memory.services import Change, Provenance
from apps.memory.services.superseding import supersede_with
from apps.memory.trust.grounding import telling_text

from .claims import Claimed, usage_count, window_done, window_locked
from .evidence import is_read_before, trust_of_item
from .items import Action, Dropped, Item
from .knowing import Known
from .nearest import Nearby, Past
from .outcome import Outcome
from .sameness import Told, adds_to

MAX_LINKS = 3
LINK_FROM = 0.5
"""Calibrated similarity from which on a new note is linked to a neighbour."""


@transaction.atomic
def window_apply(
    claimed: Claimed,
    holder: str,
    *,
    items: Sequence[Item],
    near: Sequence[Nearby],
    past: Sequence[Past],
    shown: Sequence[Told],
    dropped: Sequence[Dropped],
    usage: Usage,
) -> Outcome | None:
    """Writes what a window's items say and marks it read; None where the window was changed or withdrawn meanwhile.

    Raises LeaseLost. Either all of it happens or nothing does.
    """
    window = window_locked(claimed, holder)
    if window is None:
        return None
    outcome = Outcome(dropped=list(dropped))
    applying = _Applying(claimed, outcome, Known(claimed.user_id, past, shown))
    for place, (item, around) in enumerate(zip(items, near, strict=True)):
        try:
            with transaction.atomic():
                applying.take(place, item, around)
        except IzzyError as error:
            outcome.dropped.append(Dropped(error.code, str(error.extra.get("field", ""))))
    _store(window, outcome, usage)
    return outcome


def _store(window: CaptureWindow, outcome: Outcome, usage: Usage) -> None:
    for name in ("added", "merged", "superseded", "pending", "skipped", "injected_again"):
        setattr(window, name, getattr(outcome, name))
    window.gate = GateVerdict.PASSED
    window.dropped = [reason.to_json() for reason in outcome.dropped]
    window.memory_ids = list(dict.fromkeys(str(value) for value in outcome.memory_ids))
    usage_count(window, usage)
    window_done(window)


@dataclass(slots=True)
class _Applying:
    """The items of one window, one after the other."""

    claimed: Claimed
    outcome: Outcome
    known: Known
    place: int = 0

    def take(self, place: int, item: Item, around: Nearby) -> None:
        self.place = place
        if item.action == Action.SKIP:
            self._skip("known")
            return
        if is_read_before(item.evidence, self.claimed.segments):
            self._skip("read_before")
            return
        trust = trust_of_item(
            telling_text(item.content, {"tags": item.tags}), item.evidence, self.claimed.segments
        )
        if item.action != Action.SUPERSEDE and self.known.was_shown(item):
            self.outcome.injected_again += 1
            return
        said_at = self._said_at(item)
        target = self._target(item)
        same = self.known.same_as(item, around, target=target, trust=trust)
        reason = self.known.past_reason(item, trust, said_at)
        if same is not None and not (reason and trust == Trust.UNTRUSTED):
            self._absorb(same, item, trust)
            self._give_way(target, same, item, trust, said_at)
        elif reason is not None:
            self._skip(reason)
        elif target is not None and said_at < (target.valid_from or target.created_at):
            self._skip("older_than_note")
        else:
            self._write(item, trust, said_at, target, around)

    def _skip(self, code: str) -> None:
        self.outcome.skipped += 1
        self.outcome.dropped.append(Dropped(code))

    def _said_at(self, item: Item) -> datetime:
        places = item.evidence or range(len(self.claimed.segments))
        return max(self.claimed.segments[place].said_at for place in places)

    def _target(self, item: Item) -> Memory | None:
        if item.target is None or item.action == Action.ADD:
            return None
        notes = Memory.objects.for_user(self.claimed.user_id).select_for_update()
        return notes.filter(pk=item.target, status=Status.ACTIVE).first()

    def _absorb(self, note: Memory, item: Item, trust: Trust) -> None:
        if note.status == Status.PENDING:
            self._skip("waits_for_review")
            return
        richer = adds_to(item.content, note.content)
        if not richer and (trust != Trust.USER or note.source_message_id in self._cited_messages(item)):
            # A note weighs more when the user says it another time, not by Izzy's echo, nor by the very message that
            # it was saved from during the turn.
            self._skip("known")
            return
        kept = services.memory_absorb(
            user_id=self.claimed.user_id,
            memory_id=note.pk,
            content=item.content if richer else None,
            trust=trust,
            tags=item.tags,
            change=self._change(item, trust, "said again"),
        )
        self._count(kept, "merged")

    def _give_way(
        self, target: Memory | None, same: Memory, item: Item, trust: Trust, said_at: datetime
    ) -> None:
        """What an item supersedes gives way to the note that says it already."""
        if (
            target is None
            or target == same
            or item.action != Action.SUPERSEDE
            or same.status != Status.ACTIVE
        ):
            return
        status, _ = status_for(user_id=self.claimed.user_id, trust=trust, sensitive=item.sensitive)
        if status == Status.ACTIVE and said_at >= (target.valid_from or target.created_at):
            change = self._change(item, trust, "another note says what holds now")
            supersede_with(target, same, at=said_at, action=NoteAction.SUPERSEDED, change=change)
            self.outcome.superseded += 1
            self.outcome.memory_ids.append(target.pk)

    def _write(
        self, item: Item, trust: Trust, said_at: datetime, target: Memory | None, around: Nearby
    ) -> None:
        if target is not None and item.action == Action.UPDATE:
            kept = services.memory_absorb(
                user_id=self.claimed.user_id,
                memory_id=target.pk,
                content=item.content,
                trust=trust,
                importance=item.importance,
                tags=item.tags,
                change=self._change(item, trust, "more was said about it"),
            )
            self._count(kept, "merged")
            return
        start = self._valid_from(item, said_at)
        fields = {
            "kind": item.kind,
            "importance": item.importance,
            "tags": list(item.tags),
            "tier": item.tier,
            "valid_to": item.valid_to if item.valid_to and item.valid_to > start else None,
        }
        provenance = self._provenance(item, trust)
        if target is not None:
            note = services.memory_supersede(
                user_id=self.claimed.user_id,
                memory_id=target.pk,
                content=item.content,
                provenance=provenance,
                change=self._change(item, trust, "something else was said"),
                valid_from=start,
                **fields,  # type: ignore[arg-type]
            )
            self._count(note, "superseded")
        else:
            note = services.memory_submit(
                user_id=self.claimed.user_id,
                content=item.content,
                provenance=provenance,
                sensitive=item.sensitive,
                valid_from=start,
                **fields,  # type: ignore[arg-type]
            )
            self._count(note, "added")
        if note.status == Status.ACTIVE:
            self._link(note, around)

    def _valid_from(self, item: Item, said_at: datetime) -> datetime:
        """Since when it is true: what was said, else when it was said; never ahead, or search would not find it yet."""
        now = timezone.now()
        return min(item.valid_from if item.valid_from and item.valid_from <= now else said_at, now)

    def _link(self, note: Memory, around: Nearby) -> None:
        """Ties a new note to its nearest neighbours."""
        near = [(key, value) for key, value in around.notes if value >= LINK_FROM and key != note.pk][
            :MAX_LINKS
        ]
        active = Memory.objects.for_user(self.claimed.user_id).filter(status=Status.ACTIVE)
        living = set(active.filter(pk__in=[key for key, _ in near]).values_list("pk", flat=True))
        for key, value in near:
            if key not in living:
                continue
            services.edge_create(
                user_id=self.claimed.user_id,
                source_id=note.pk,
                target_id=key,
                relation=Relation.RELATED,
                weight=round(value, 3),
            )

    def _count(self, note: Memory, name: str) -> None:
        if note.status == Status.PENDING:
            name = "pending"
        setattr(self.outcome, name, getattr(self.outcome, name) + 1)
        self.outcome.memory_ids.append(note.pk)
        self.known.written[self.place] = note

    def _cited_messages(self, item: Item) -> set[UUID]:
        places = item.evidence or range(len(self.claimed.segments))
        return {self.claimed.segments[place].message for place in places}

    def _source_message(self, item: Item) -> UUID:
        places = item.evidence or range(len(self.claimed.segments))
        fresh = [place for place in places if not self.claimed.segments[place].seen]
        return self.claimed.segments[(fresh or list(places))[0]].message

    def _provenance(self, item: Item, trust: Trust) -> Provenance:
        return Provenance(
            origin=Origin.EXTRACTION,
            trust=trust,
            conversation_id=self.claimed.conversation_id,
            message_id=self._source_message(item),
        )

    def _change(self, item: Item, trust: Trust, reason: str) -> Change:
        return Change(
            actor=Origin.EXTRACTION,
            reason=reason,
            trust=trust,
            sensitive=item.sensitive,
            conversation_id=self.claimed.conversation_id,
            message_id=self._source_message(item),
        )
