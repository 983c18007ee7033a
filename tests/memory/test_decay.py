"""Priorities fade by chat turns, computed where they are asked for."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import User
from apps.memory.models import Memory
from apps.memory.notes.changes import access_record, cycle_advance, decay_apply, memory_update
from apps.memory.notes.selectors import (
    NoteFilter,
    current_cycle,
    memories_list,
    memory_get,
    note_history,
)
from apps.memory.notes.undoing import memory_restore
from tests.memory.conftest import MakeNote, found


def turns(user: User, count: int) -> None:
    for _ in range(count):
        cycle_advance(user_id=user.pk)


@pytest.mark.parametrize(
    ("tier", "cycles", "priority"),
    [
        ("short_term", 0, 0.6),
        ("short_term", 1, 0.58),
        ("short_term", 27, 0.06),
        ("short_term", 30, 0.0),
        ("short_term", 45, 0.0),
        ("long_term", 1, 0.895),
        ("long_term", 100, 0.4),
    ],
)
def test_priority_falls_by_the_tiers_rate_and_never_below_zero(
    alice: User, note: MakeNote, tier: str, cycles: int, priority: float
) -> None:
    made = note(alice, tier=tier)
    turns(alice, cycles)
    assert memory_get(alice.pk, made.pk).present == pytest.approx(priority)


def test_each_user_has_a_clock_of_their_own(alice: User, bob: User, note: MakeNote) -> None:
    mine, his = note(alice), note(bob)
    turns(alice, 10)
    assert (current_cycle(alice.pk), current_cycle(bob.pk)) == (10, 0)
    assert memory_get(alice.pk, mine.pk).present == pytest.approx(0.85)
    assert memory_get(bob.pk, his.pk).present == pytest.approx(0.9)


def test_a_later_note_does_not_pay_for_earlier_turns(alice: User, note: MakeNote) -> None:
    turns(alice, 50)
    made = note(alice)
    turns(alice, 2)
    assert memory_get(alice.pk, made.pk).present == pytest.approx(0.89)


def test_another_rate_counts_from_now(alice: User, note: MakeNote) -> None:
    made = note(alice)
    turns(alice, 100)
    memory_update(user_id=alice.pk, memory_id=made.pk, decay_rate=0.02)
    assert memory_get(alice.pk, made.pk).present == pytest.approx(0.4)
    turns(alice, 1)
    assert memory_get(alice.pk, made.pk).present == pytest.approx(0.38)


def test_a_turn_costs_the_same_whatever_there_is_to_remember(alice: User, note: MakeNote) -> None:
    cycle_advance(user_id=alice.pk)
    counts = []
    for notes in (1, 20):
        for number in range(notes):
            note(alice, f"Note {number}.")
        with CaptureQueriesContext(connection) as queries:
            cycle_advance(user_id=alice.pk)
        counts.append(len(queries))
        assert not any("memory_memory" in query["sql"] for query in queries)
    assert counts[0] == counts[1]


def test_lists_sort_by_what_priorities_are_by_now(alice: User, note: MakeNote) -> None:
    slow, fast = note(alice, "slow", priority=0.5), note(alice, "fast", tier="short_term")
    assert list(memories_list(alice.pk, NoteFilter(ordering="-priority"))) == [fast, slow]
    turns(alice, 10)
    assert list(memories_list(alice.pk, NoteFilter(ordering="-priority"))) == [slow, fast]


def test_reading_counts_for_own_notes_alone(alice: User, bob: User, note: MakeNote) -> None:
    mine, other, his = note(alice), note(alice, "Other."), note(bob)
    access_record(user_id=alice.pk, memory_ids=[mine.pk, his.pk])
    access_record(user_id=alice.pk, memory_ids=[mine.pk])
    read, unread, foreign = (Memory.objects.unscoped().get(pk=row.pk) for row in (mine, other, his))
    assert (read.access_count, unread.access_count, foreign.access_count) == (2, 0, 0)
    assert read.last_accessed is not None
    assert (unread.last_accessed, foreign.last_accessed) == (None, None)
    assert read.updated_at == mine.updated_at


def test_reading_does_not_slow_the_fading_down(alice: User, note: MakeNote) -> None:
    used, unused = note(alice), note(alice, "Other.")
    turns(alice, 100)
    access_record(user_id=alice.pk, memory_ids=[used.pk])
    turns(alice, 20)
    assert [memory_get(alice.pk, row.pk).present for row in (used, unused)] == [pytest.approx(0.3)] * 2


def test_writing_priorities_down_changes_none_of_them(alice: User, note: MakeNote) -> None:
    notes = [note(alice, f"Note {tier}", tier=tier) for tier in ("short_term", "long_term")]
    turns(alice, 10)
    before = [memory_get(alice.pk, row.pk).present for row in notes]
    assert decay_apply(user_id=alice.pk, archive_after=timedelta(days=90)) == (2, 0)
    after = [memory_get(alice.pk, row.pk) for row in notes]
    assert [row.present for row in after] == pytest.approx(before)
    assert [row.priority_cycle for row in after] == [10, 10]
    assert decay_apply(user_id=alice.pk, archive_after=timedelta(days=90)) == (0, 0)
    turns(alice, 1)
    assert memory_get(alice.pk, notes[0].pk).present == pytest.approx(0.38)


def test_what_faded_and_went_unread_is_archived_and_can_come_back(alice: User, note: MakeNote) -> None:
    unread = note(alice, "The parking ticket is in the drawer.", tier="short_term")
    read = note(alice, "The meeting is on Monday.", tier="short_term")
    strong = note(alice, "The router is in the hall.")
    vital = note(alice, "The key is under the mat.", tier="short_term", importance=4)
    lasting = note(alice, "The cat is called Mia.", priority=0.1)
    standing = note(alice, "Answers are to be brief.", tier="short_term", category="standing")
    turns(alice, 40)
    access_record(user_id=alice.pk, memory_ids=[read.pk])
    Memory.objects.for_user(alice).update(updated_at=F("updated_at") - timedelta(days=100))
    output = StringIO()
    call_command("decay", stdout=output)
    assert "1 notes archived" in output.getvalue()
    states = [
        memory_get(alice.pk, row.pk).status for row in (unread, read, strong, vital, lasting, standing)
    ]
    assert states == ["archived", *["active"] * 5]
    assert note_history(alice.pk, unread.pk)[0].reason == "faded and unread"
    assert unread.pk not in found(alice, "parking ticket")
    memory_restore(user_id=alice.pk, memory_id=unread.pk)
    assert found(alice, "parking ticket")[0] == unread.pk
    assert (
        decay_apply(user_id=alice.pk, archive_after=timedelta(days=90))[1] == 0
    )  # brought back is not unread


def test_a_note_read_long_ago_is_archived_too(alice: User, note: MakeNote) -> None:
    made = note(alice, tier="short_term")
    turns(alice, 40)
    long_ago = timezone.now() - timedelta(days=100)
    Memory.objects.for_user(alice).update(last_accessed=long_ago, updated_at=long_ago)
    assert decay_apply(user_id=alice.pk, archive_after=timedelta(days=90))[1] == 1
    assert memory_get(alice.pk, made.pk).status == "archived"
