"""Applies statements to notes. Each call adds what it did to an outcome and needs a transaction."""

from typing import Any

from apps.memory import services
from apps.memory.fields import STANDING
from apps.memory.models import Action as NoteAction
from apps.memory.models import Memory, Relation, Status, Trust
from apps.memory.review.policy import status_for
from apps.memory.services.superseding import supersede_with

from .candidates import Nearby
from .evidence import Statement
from .items import Action
from .outcome import Outcome
from .similarity import adds_to

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
    kept = services.memory_absorb(
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
    return services.memory_absorb(
        user_id=statement.user_id,
        memory_id=target.pk,
        content=item.content,
        trust=statement.trust,
        importance=item.importance,
        tags=item.tags,
        change=statement.change("more was said about it"),
    )


def _superseding(target: Memory, statement: Statement) -> Memory:
    return services.memory_supersede(
        user_id=statement.user_id,
        memory_id=target.pk,
        content=statement.item.content,
        provenance=statement.provenance,
        change=statement.change("something else was said"),
        **_fields(statement),
    )


def _new(statement: Statement) -> Memory:
    return services.memory_submit(
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
            services.edge_create(
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
