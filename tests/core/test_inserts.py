"""`insert_all` writes what the ORM would have written."""

from datetime import UTC, datetime

import pytest

from apps.accounts.models import User
from apps.core.db.writing import insert_all
from apps.core.ids import uuid7
from apps.memory.models import Memory
from apps.search.models import Tombstone

pytestmark = pytest.mark.django_db
WHEN = datetime(2026, 5, 1, 12, 30, 15, 123456, tzinfo=UTC)


def test_rows_come_back_as_they_went_in(alice: User) -> None:
    quick, slow = (
        Memory(user=alice, content="Grüße", tags=["é", "b"], valid_from=WHEN, source_message_id=uuid7())
        for _ in range(2)
    )
    slow.save(force_insert=True)
    insert_all([quick])
    fields = [field.attname for field in Memory._meta.concrete_fields]
    for note in (quick, slow):
        stored = Memory.objects.for_user(alice).get(pk=note.pk)
        assert [getattr(stored, name) for name in fields] == [getattr(note, name) for name in fields]


def test_a_row_that_was_inserted_can_be_saved_again(alice: User) -> None:
    note = Memory(user=alice, content="Tea")
    insert_all([note])
    note.content = "Coffee"
    note.save(update_fields=["content"])
    assert Memory.objects.for_user(alice).get().content == "Coffee"


def test_the_database_gives_the_keys_that_are_its_own(alice: User) -> None:
    insert_all(
        [Tombstone(user=alice, change=1, passage_id=number, created_at=WHEN) for number in range(3)]
    )
    assert len(set(Tombstone.objects.values_list("pk", flat=True))) == 3


def test_no_rows_are_no_statement(django_assert_num_queries: object) -> None:
    with django_assert_num_queries(0):  # type: ignore[operator]
        insert_all([])
