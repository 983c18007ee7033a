"""Deleted is out of sight at once, back within 30 days, and gone for good after."""

from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from apps.accounts.models import User
from apps.core.errors import NotFound
from apps.core.jobs.worker import sweeps
from apps.core.registries import account_deleters
from apps.memory import purge
from apps.memory.models import DecayCycle, Memory, MemoryEdge, MemoryRevision
from apps.memory.notes.changes import cycle_advance, memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import edge_create
from apps.memory.notes.selectors import links_of, memories_by_id, memory_get, related_notes
from apps.memory.notes.undoing import memory_restore, memory_undo
from apps.memory.purge import deleted_purge
from apps.memory.recall.injection import surface
from apps.search.backends import Stem, backend
from apps.search.models import IndexOwner
from apps.search.selectors import context
from tests.failing import fails_first
from tests.memory.conftest import MakeNote, found

WORD = "quokkas"


STEM = "quokka"


def rows_with(word: str) -> dict[str, int]:
    """How many rows of each table hold a word in any column; full text is looked into by `in_full_text`."""
    counts: dict[str, int] = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            if table.startswith("search_terms"):
                continue
            columns = [
                column.name for column in connection.introspection.get_table_description(cursor, table)
            ]
            tests = " OR ".join(f'CAST("{name}" AS TEXT) LIKE %s' for name in columns)
            cursor.execute(f'SELECT COUNT(*) FROM "{table}" WHERE {tests}', [f"%{word}%"] * len(columns))
            if count := cursor.fetchone()[0]:
                counts[table] = count
    return counts


def in_full_text(user: User) -> bool:
    """Whether full text finds the word among the user's passages."""
    (found,) = backend.postings(IndexOwner.objects.get(user=user).number, [Stem(STEM)])
    return len(found) > 0


def age(note: Memory, days: float) -> None:
    """Pretend that a note was deleted some days ago."""
    rows = Memory.objects.with_deleted(note.user_id).filter(pk=note.pk)
    rows.update(deleted_at=timezone.now() - timedelta(days=days))


def test_a_deleted_note_is_out_of_everything_at_once(alice: User, note: MakeNote) -> None:
    made = note(alice, f"Saw {WORD} on Rottnest Island.", importance=5)
    other = note(alice, "The cat is called Mia.")
    edge_create(user_id=alice.pk, source_id=other.pk, target_id=made.pk)
    assert found(alice, WORD)[0] == made.pk
    deleted = memory_delete(user_id=alice.pk, memory_id=made.pk)
    assert deleted.status == "deleted"
    assert made.pk not in found(alice, WORD)
    assert WORD not in context(alice.pk, WORD).text
    assert WORD not in surface(alice.pk, [f"tell me about {WORD}"]).text
    assert list(Memory.objects.for_user(alice)) == [other]
    assert memories_by_id(alice.pk, [made.pk]) == {}
    assert related_notes(alice.pk, other.pk) == []
    assert list(links_of(alice.pk, other.pk)) == []
    with pytest.raises(NotFound):
        memory_get(alice.pk, made.pk)


def test_no_passage_of_a_deleted_note_is_left(alice: User, note: MakeNote) -> None:
    made = note(alice, f"Saw {WORD}.")
    assert in_full_text(alice)
    assert "search_passage" in rows_with(STEM)
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    assert set(rows_with(STEM)) == {"memory_memory", "memory_memoryrevision"}
    assert not in_full_text(alice)


def test_a_deleted_note_cannot_be_changed_or_deleted_again(alice: User, note: MakeNote) -> None:
    made = note(alice)
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    calls: list[Any] = [memory_update, memory_delete, memory_archive]
    for call in calls:
        with pytest.raises(NotFound):
            call(user_id=alice.pk, memory_id=made.pk)
    with pytest.raises(NotFound):
        memory_undo(user_id=alice.pk, memory_id=made.pk, version=1)


def test_restoring_brings_everything_back(alice: User, note: MakeNote) -> None:
    made = note(alice, f"Saw {WORD}.", tags=["animals"])
    other = note(alice, "The cat is called Mia.")
    edge_create(user_id=alice.pk, source_id=made.pk, target_id=other.pk, relation="elaborates")
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    back = memory_restore(user_id=alice.pk, memory_id=made.pk)
    assert (back.pk, back.status, back.deleted_at, back.tags) == (made.pk, "active", None, ["animals"])
    assert found(alice, WORD)[0] == made.pk
    assert [near.note.pk for near in related_notes(alice.pk, made.pk)] == [other.pk]


@pytest.mark.parametrize("status", ["active", "pending", "archived"])
def test_restoring_gives_the_status_from_before(alice: User, note: MakeNote, status: str) -> None:
    made = note(alice, status=status)
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    assert memory_restore(user_id=alice.pk, memory_id=made.pk).status == status


def test_a_note_deleted_twice_comes_back_as_it_was_last(alice: User, note: MakeNote) -> None:
    made = note(alice)
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    memory_restore(user_id=alice.pk, memory_id=made.pk)
    memory_archive(user_id=alice.pk, memory_id=made.pk)
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    assert memory_restore(user_id=alice.pk, memory_id=made.pk).status == "archived"
    assert memory_restore(user_id=alice.pk, memory_id=made.pk).status == "active"


def test_restoring_what_is_there_changes_nothing(alice: User, note: MakeNote) -> None:
    made = note(alice)
    assert memory_restore(user_id=alice.pk, memory_id=made.pk).updated_at == made.updated_at
    assert MemoryRevision.objects.for_user(alice).count() == 0


def test_after_thirty_days_there_is_no_way_back_even_before_the_sweep(
    alice: User, note: MakeNote
) -> None:
    made = note(alice)
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    age(made, 29.9)
    assert list(Memory.objects.restorable(alice.pk)) == [made]
    age(made, 30.1)
    assert list(Memory.objects.restorable(alice.pk)) == []
    with pytest.raises(NotFound):
        memory_restore(user_id=alice.pk, memory_id=made.pk)


def test_the_sweep_erases_what_is_due_without_a_trace(alice: User, bob: User, note: MakeNote) -> None:
    due, young, kept = note(alice, f"Saw {WORD}."), note(alice, "Young."), note(alice, "Kept.")
    foreign = note(bob, f"Bob saw {WORD} too.")
    edge_create(user_id=alice.pk, source_id=kept.pk, target_id=due.pk)
    memory_update(user_id=alice.pk, memory_id=due.pk, content=f"Saw two {WORD}.")
    for made, owner in ((due, alice), (young, alice), (foreign, bob)):
        memory_delete(user_id=owner.pk, memory_id=made.pk)
    age(due, 31)
    age(foreign, 31)
    assert deleted_purge() == 2
    assert rows_with(STEM) == {}
    assert not in_full_text(alice)
    assert {row.pk for row in Memory.objects.with_deleted(alice.pk)} == {young.pk, kept.pk}
    assert MemoryEdge.objects.unscoped().count() == 0
    assert deleted_purge() == 0


def test_what_the_sweep_cannot_erase_keeps_nobody_elses_from_going(
    alice: User, bob: User, note: MakeNote, monkeypatch: pytest.MonkeyPatch
) -> None:
    for user in (alice, bob):
        made = note(user, f"Saw {WORD}.")
        memory_delete(user_id=user.pk, memory_id=made.pk)
        age(made, 31)
    monkeypatch.setattr(purge, "memory_purge", fails_first(purge.memory_purge))
    with pytest.raises(ValueError, match="broken"):
        deleted_purge()
    assert Memory.everything.count() == 1
    assert deleted_purge() == 1


def test_the_sweep_is_registered_and_runs(alice: User, note: MakeNote) -> None:
    made = note(alice)
    memory_delete(user_id=alice.pk, memory_id=made.pk)
    age(made, 40)
    (sweep,) = [entry for entry in sweeps() if entry.name == "memory_deleted_purge"]
    sweep.function()
    assert not Memory.objects.with_deleted(alice.pk).exists()


def test_a_purged_note_leaves_those_it_superseded(alice: User, note: MakeNote) -> None:
    old, new = note(alice, "Old."), note(alice, "New.")
    Memory.objects.for_user(alice).filter(pk=old.pk).update(status="superseded", superseded_by=new)
    memory_delete(user_id=alice.pk, memory_id=new.pk)
    age(new, 31)
    deleted_purge()
    assert memory_get(alice.pk, old.pk).superseded_by_id is None


def test_deleting_an_account_clears_its_memory_and_no_other(
    alice: User, bob: User, note: MakeNote
) -> None:
    mine, second = note(alice, f"Saw {WORD}."), note(alice, "Second.")
    his = note(bob, "Bob's own.")
    edge_create(user_id=alice.pk, source_id=mine.pk, target_id=second.pk)
    memory_update(user_id=alice.pk, memory_id=mine.pk, content="Changed.")
    memory_delete(user_id=alice.pk, memory_id=second.pk)
    cycle_advance(user_id=alice.pk)
    assert account_deleters["memory"](alice.pk) >= 2
    for model in (Memory, MemoryRevision, MemoryEdge):
        assert not model._base_manager.filter(user=alice).exists()
    assert not DecayCycle.objects.filter(user=alice).exists()
    assert memory_get(bob.pk, his.pk)


def test_no_table_of_memory_is_forgotten_by_the_purger() -> None:
    """A new table of the app must be thought of in `user_forget` or `user_files_forget`."""
    names = {model.__name__ for model in apps.get_app_config("memory").get_models()}
    files = {"MemoryFile", "MemoryFileRevision"}
    cascading = {
        "PurgeReceipt",
        "NoteHandle",
        "CaptureWindow",
        "CaptureLease",
        "MemorySummary",
        "Import",  # its file goes by `user_uploads_forget`
    }  # nothing but rows that go with their user
    assert names == {
        "Memory",
        "MemoryRevision",
        "MemoryEdge",
        "NoteHandle",
        "MemoryUse",
        "DecayCycle",
        *files,
        *cascading,
    }
