"""A note that is to be replaced from a time ahead by one that is itself replaced, or merged, before that."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.memory.models import Memory, MemoryEdge, Relation, Status
from apps.memory.notes.changes import memories_erase, memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import (
    contradiction_resolve,
    edge_create,
    memory_merge,
    memory_supersede,
    superseded_due,
)
from apps.memory.notes.undoing import memory_restore, memory_undo
from apps.memory.purge import memory_purge
from tests.memory.conftest import MakeNote

pytestmark = pytest.mark.django_db

NOW = timezone.now()
LATER, SOONER, LAST = (NOW + timedelta(days=days) for days in (30, 10, 90))


def fresh(note: Memory) -> Memory:
    return Memory.everything.get(pk=note.pk)


def ends(note: Memory) -> tuple[object, ...]:
    row = fresh(note)
    return row.status, row.superseded_by_id, row.valid_to


def planned(alice: User, note: MakeNote, **fields: object) -> tuple[Memory, Memory]:
    old = note(alice, "The user lives in Lisbon.", **fields)
    new = memory_supersede(
        user_id=alice.pk, memory_id=old.pk, content="The user lives in Oslo.", valid_from=LATER
    )
    assert ends(old)[:2] == (Status.ACTIVE, new.pk)
    return old, new


def test_what_stands_in_the_place_of_a_plan_ends_the_note_when_it_begins(
    alice: User, note: MakeNote
) -> None:
    old, new = planned(alice, note)
    third = memory_supersede(
        user_id=alice.pk, memory_id=new.pk, content="The user lives in Bergen.", valid_from=SOONER
    )
    assert fresh(new).status == Status.SUPERSEDED
    assert ends(old) == (Status.ACTIVE, third.pk, SOONER)
    memory_update(user_id=alice.pk, memory_id=third.pk, valid_from=LATER)
    assert ends(old) == (Status.ACTIVE, third.pk, LATER)


def test_what_holds_at_once_in_the_place_of_a_plan_ends_the_note_at_once(
    alice: User, note: MakeNote
) -> None:
    old, new = planned(alice, note)
    third = memory_supersede(user_id=alice.pk, memory_id=new.pk, content="The user lives in Bergen.")
    assert ends(old) == (Status.SUPERSEDED, third.pk, third.created_at)


def test_what_follows_a_plan_that_begins_leaves_the_note_at_that(alice: User, note: MakeNote) -> None:
    old, new = planned(alice, note)
    memory_supersede(
        user_id=alice.pk, memory_id=new.pk, content="The user lives in Bergen.", valid_from=LAST
    )
    assert ends(old) == (Status.ACTIVE, new.pk, LATER)
    assert fresh(new).valid_to == LAST


@pytest.mark.parametrize("begins", [SOONER, None])
@pytest.mark.parametrize("until", [None, LAST])
def test_undoing_that_has_the_plan_back(
    alice: User, note: MakeNote, begins: object, until: object
) -> None:
    old, new = planned(alice, note, valid_to=until)
    third = memory_supersede(
        user_id=alice.pk, memory_id=new.pk, content="The user lives in Bergen.", valid_from=begins
    )
    memory_restore(user_id=alice.pk, memory_id=new.pk)
    assert fresh(third).status == Status.DELETED
    assert (fresh(new).status, fresh(new).valid_from) == (Status.ACTIVE, LATER)
    assert ends(old) == (Status.ACTIVE, new.pk, LATER)
    memory_delete(user_id=alice.pk, memory_id=new.pk)
    assert ends(old) == (Status.ACTIVE, None, until)
    assert not MemoryEdge.objects.for_user(alice).filter(source=third).exists()


def test_the_note_holds_on_where_what_stands_in_the_place_of_the_plan_goes(
    alice: User, note: MakeNote
) -> None:
    old, new = planned(alice, note, valid_to=LAST)
    third = memory_supersede(
        user_id=alice.pk, memory_id=new.pk, content="The user lives in Bergen.", valid_from=SOONER
    )
    memory_delete(user_id=alice.pk, memory_id=third.pk)
    assert ends(old) == (Status.ACTIVE, None, LAST)
    memory_restore(user_id=alice.pk, memory_id=third.pk)
    assert ends(old) == (Status.ACTIVE, third.pk, SOONER)
    memory_restore(user_id=alice.pk, memory_id=new.pk)
    assert ends(old) == (Status.ACTIVE, new.pk, LATER)


def test_bringing_the_note_back_takes_away_what_stood_in_the_place_of_the_plan(
    alice: User, note: MakeNote
) -> None:
    old, new = planned(alice, note)
    third = memory_supersede(user_id=alice.pk, memory_id=new.pk, content="The user lives in Bergen.")
    memory_restore(user_id=alice.pk, memory_id=old.pk)
    assert ends(old) == (Status.ACTIVE, None, None)
    assert fresh(third).status == Status.DELETED


def test_a_plan_that_loses_a_contradiction_ends_nothing(alice: User, note: MakeNote) -> None:
    old, new = planned(alice, note)
    edge = edge_create(
        user_id=alice.pk, source_id=new.pk, target_id=old.pk, relation=Relation.CONTRADICTS
    )
    contradiction_resolve(user_id=alice.pk, edge_id=edge.pk, keep_id=old.pk)
    assert ends(old) == (Status.ACTIVE, None, None)
    assert fresh(new).status == Status.SUPERSEDED


def merged(alice: User, into: Memory, *others: Memory) -> None:
    memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[other.pk for other in others])


def unmerged(alice: User, into: Memory) -> None:
    version = into.revisions.order_by("-version").filter(action="merged")[0].version
    memory_undo(user_id=alice.pk, memory_id=into.pk, version=version)


def test_a_plan_that_is_merged_into_another_note_ends_the_note_at_once(
    alice: User, note: MakeNote
) -> None:
    old, new = planned(alice, note)
    other = note(alice, "The user has a flat in Oslo.")
    merged(alice, other, new)
    assert ends(old)[:2] == (Status.SUPERSEDED, other.pk)
    unmerged(alice, other)
    assert ends(old) == (Status.ACTIVE, new.pk, LATER)
    assert (fresh(new).status, fresh(other).status) == (Status.ACTIVE, Status.ACTIVE)


@pytest.mark.parametrize("place", ["plan", "note", "other"])
@pytest.mark.parametrize("until", [None, LAST])
def test_undoing_a_merge_of_a_note_with_what_is_to_replace_it_keeps_the_plan(
    alice: User, note: MakeNote, place: str, until: object
) -> None:
    old, new = planned(alice, note, valid_to=until)
    other = note(alice, "The user has a flat in Oslo.")
    into = {"plan": new, "note": old, "other": other}[place]
    merged(alice, into, *(each for each in (new, old, other) if each != into))
    assert [fresh(each).status for each in (old, new, other) if each != into] == [Status.SUPERSEDED] * 2
    unmerged(alice, into)
    assert ends(old) == (Status.ACTIVE, new.pk, LATER)
    assert (fresh(new).status, fresh(new).valid_from) == (Status.ACTIVE, LATER)
    memory_update(user_id=alice.pk, memory_id=new.pk, valid_from=SOONER)
    assert ends(old) == (Status.ACTIVE, new.pk, SOONER)
    memory_delete(user_id=alice.pk, memory_id=new.pk)
    assert ends(old) == (Status.ACTIVE, None, until)


def test_a_note_that_comes_back_alone_from_what_was_to_replace_it_leaves_that_there(
    alice: User, note: MakeNote
) -> None:
    old, new = planned(alice, note)
    merged(alice, new, old)
    memory_restore(user_id=alice.pk, memory_id=old.pk)
    assert (fresh(old).status, fresh(new).status) == (Status.ACTIVE, Status.ACTIVE)


def erase(alice: User, note: Memory) -> None:
    memory_delete(user_id=alice.pk, memory_id=note.pk)
    memories_erase(user_id=alice.pk, memory_ids=[note.pk])


def purge(alice: User, note: Memory) -> None:
    memory_purge(user_id=alice.pk, ids=[note.pk])


@pytest.mark.parametrize("put_away", [memory_delete, memory_archive])
@pytest.mark.parametrize("take_out", [purge, erase])
@pytest.mark.parametrize("until", [None, LAST])
def test_a_note_that_was_put_away_holds_on_where_its_plan_is_gone_when_it_is_brought_back(
    alice: User,
    note: MakeNote,
    put_away: Callable[..., Memory],
    take_out: Callable[[User, Memory], None],
    until: object,
) -> None:
    old, new = planned(alice, note, valid_to=until)
    put_away(user_id=alice.pk, memory_id=old.pk)
    take_out(alice, new)
    memory_restore(user_id=alice.pk, memory_id=old.pk)
    assert ends(old) == (Status.ACTIVE, None, until)


def test_a_note_that_was_replaced_and_then_put_away_ended_when_it_was_replaced(
    alice: User, note: MakeNote
) -> None:
    old = note(alice, "The user lives in Lisbon.")
    new = memory_supersede(user_id=alice.pk, memory_id=old.pk, content="The user lives in Oslo.")
    memory_archive(user_id=alice.pk, memory_id=old.pk)
    purge(alice, new)
    assert ends(old) == (Status.ARCHIVED, None, new.created_at)


def test_what_was_merged_with_its_plan_and_parted_is_replaced_and_comes_back_as_ever(
    alice: User, note: MakeNote
) -> None:
    old, new = planned(alice, note)
    merged(alice, new, old)
    unmerged(alice, new)
    Memory.objects.for_user(alice).filter(pk=old.pk).update(valid_to=timezone.now())
    assert superseded_due() == 1
    memory_restore(user_id=alice.pk, memory_id=old.pk)
    assert (fresh(old).status, fresh(new).status) == (Status.ACTIVE, Status.DELETED)
