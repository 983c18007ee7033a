"""From checked items to notes: all of a window's results in one transaction with marking it read."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.db import transaction

from apps.agent.client import Usage
from apps.core.errors import IzzyError
from apps.memory.fields import STANDING
from apps.memory.models import CaptureWindow, GateVerdict, Memory, Status, Trust

from .candidates import Nearby, Past
from .claims import Claimed, usage_count, window_done, window_locked
from .dedup import Known
from .evidence import Statement
from .items import Action, Dropped, Item
from .outcome import COUNTS, Outcome
from .similarity import Content
from .writing import give_way, is_older, say_again, statement_write


@transaction.atomic
def window_apply(
    claimed: Claimed,
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
    window = window_locked(claimed)
    if window is None:
        return None
    total = Outcome(dropped=list(dropped))
    applying = _Applying(claimed, Known(claimed.user_id, past, shown))
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

    claimed: Claimed
    known: Known

    def take(self, item: Item, around: Nearby, outcome: Outcome) -> Memory | None:
        """Does what an item asks for, as far as it brings anything new; returns the note that holds it now."""
        statement = Statement.of(item, self.claimed)
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
        if self.claimed.tainted and STANDING in {note.category for note in (same, target) if note}:
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
        notes = Memory.objects.for_user(self.claimed.user_id).select_for_update()
        return notes.filter(pk=item.target, status=Status.ACTIVE).first()
