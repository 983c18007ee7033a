"""Saving notes, one or many."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import User
from apps.core.errors import InvalidInput, IzzyError, TooLarge
from apps.core.ids import uuid7
from apps.memory.models import Memory, MemoryRevision, Origin, Trust
from apps.memory.notes.changes import cycle_advance
from apps.memory.notes.creation import memory_bulk_create, memory_create
from apps.memory.notes.revisions import Change
from tests.memory.conftest import found


def test_a_note_starts_with_the_documented_values(alice: User) -> None:
    made = memory_create(user_id=alice.pk, content="I am allergic to shellfish.")
    note = Memory.objects.for_user(alice).get(pk=made.pk)
    assert (note.tier, note.kind, note.importance, note.status) == ("long_term", "general", 3, "active")
    assert (note.priority, note.decay_rate) == (0.9, 0.005)
    assert (note.origin, note.trust) == ("user", "user")
    assert (note.tags, note.category, note.access_count, note.last_accessed) == ([], "", 0, None)
    assert note.note_id == f"note-{note.pk}"
    assert note.pk.version == 7


def test_a_short_term_note_starts_lower_and_fades_faster(alice: User) -> None:
    note = memory_create(user_id=alice.pk, content="The meeting is at three.", tier="short_term")
    assert (note.priority, note.decay_rate) == (0.6, 0.02)


def test_a_note_saved_while_the_clock_ran_ahead_is_found_once_it_is_right(
    alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = timezone.now() + timedelta(hours=9)
    with monkeypatch.context() as patch:
        patch.setattr(timezone, "now", lambda: ahead)
        note = memory_create(user_id=alice.pk, content="The user is allergic to penicillin.")
    assert found(alice, "penicillin") == [note.pk]


def test_priority_and_decay_can_be_given(alice: User) -> None:
    note = memory_create(
        user_id=alice.pk, content="Once.", tier="short_term", priority=0.3, decay_rate=0.1
    )
    assert (note.priority, note.decay_rate) == (0.3, 0.1)


def test_a_note_is_found_as_soon_as_it_is_saved(alice: User) -> None:
    note = memory_create(user_id=alice.pk, content="The router stands in the hall closet.")
    assert found(alice, "where is the router") == [note.pk]


def test_it_keeps_where_a_note_came_from(alice: User) -> None:
    conversation, message = uuid7(), uuid7()
    change = Change(
        actor=Origin.ASSISTANT, trust=Trust.ASSISTANT, conversation_id=conversation, message_id=message
    )
    note = memory_create(user_id=alice.pk, content="Likes tea.", change=change)
    note.refresh_from_db()
    assert (note.origin, note.trust) == ("assistant", "assistant")
    assert (note.source_conversation_id, note.source_message_id) == (conversation, message)


def test_a_note_begins_at_the_users_present_cycle(alice: User) -> None:
    for _ in range(3):
        cycle_advance(user_id=alice.pk)
    assert memory_create(user_id=alice.pk, content="Now.").priority_cycle == 3


def test_what_cannot_be_saved_leaves_nothing_behind(alice: User) -> None:
    with pytest.raises(TooLarge):
        memory_create(user_id=alice.pk, content="x" * 20_001)
    assert Memory.objects.for_user(alice).count() == 0


@pytest.mark.parametrize("status", ["pending", "archived"])
def test_a_note_that_is_not_active_is_not_searchable(alice: User, status: str) -> None:
    memory_create(user_id=alice.pk, content="The router stands in the hall closet.", status=status)
    assert found(alice, "router") == []


def test_saving_costs_a_handful_of_queries(alice: User) -> None:
    memory_create(user_id=alice.pk, content="First, so that caches are warm.")
    with CaptureQueriesContext(connection) as queries:
        memory_create(user_id=alice.pk, content="The second note.")
    assert len(queries) <= 12, [query["sql"][:120] for query in queries]


def test_many_notes_are_saved_at_once_in_their_order(alice: User) -> None:
    drafts: list[dict[str, object]] = [
        {"content": f"Fact number {number}", "tags": [f"t{number}"]} for number in range(30)
    ]
    notes = memory_bulk_create(user_id=alice.pk, drafts=drafts)
    stored = Memory.objects.for_user(alice).order_by("pk")
    assert [note.content for note in stored] == [draft["content"] for draft in drafts]
    assert [note.pk for note in stored] == [note.pk for note in notes]
    assert [note.tags for note in stored] == [draft["tags"] for draft in drafts]


def test_what_bulk_stores_reads_back_like_what_a_single_save_stores(alice: User) -> None:
    fields: dict[str, Any] = {
        "content": "Käse & Brot – “quoted”, 日本語, emoji 🦞",
        "tags": ["Käse", "日本"],
        "tier": "short_term",
        "kind": "preference",
        "importance": 5,
        "category": "food",
        "valid_from": "2026-01-01",
        "valid_to": "2027-01-01T10:00:00+02:00",
    }
    conversation = uuid7()
    change = Change(actor=Origin.API, trust=Trust.UNTRUSTED, conversation_id=conversation)
    (many,) = memory_bulk_create(user_id=alice.pk, drafts=[fields], change=change)
    one = memory_create(user_id=alice.pk, change=change, **fields)
    skipped = {"id", "created_at", "updated_at", "occasions_due"}
    rows = [Memory.objects.for_user(alice).filter(pk=note.pk).values().get() for note in (many, one)]
    left, right = ({name: value for name, value in row.items() if name not in skipped} for row in rows)
    assert left == right
    assert many.created_at == Memory.objects.for_user(alice).get(pk=many.pk).created_at


def test_bulk_notes_are_searchable_when_it_returns(alice: User) -> None:
    notes = memory_bulk_create(
        user_id=alice.pk,
        drafts=[{"content": "The bicycle is red."}, {"content": "The cat is called Mia."}],
    )
    assert found(alice, "what is the cat called")[0] == notes[1].pk


def test_one_bad_draft_saves_none_and_is_named(alice: User) -> None:
    with pytest.raises(InvalidInput) as refused:
        memory_bulk_create(
            user_id=alice.pk, drafts=[{"content": "fine"}, {"content": ""}, {"content": "fine"}]
        )
    assert refused.value.extra == {"field": "content", "index": 1}
    assert Memory.objects.for_user(alice).count() == 0


@pytest.mark.parametrize("draft", ["text", None, 5, ["content"]])
def test_a_draft_that_is_no_object_is_refused(alice: User, draft: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        memory_bulk_create(user_id=alice.pk, drafts=[draft])  # type: ignore[list-item]
    assert refused.value.extra["index"] == 0


@pytest.mark.parametrize(("count", "error"), [(0, InvalidInput), (1001, TooLarge)])
def test_bulk_takes_one_to_a_thousand_notes(alice: User, count: int, error: type[IzzyError]) -> None:
    with pytest.raises(error):
        memory_bulk_create(user_id=alice.pk, drafts=[{"content": "x"}] * count)


def test_a_new_note_has_no_revision(alice: User) -> None:
    memory_create(user_id=alice.pk, content="Likes tea.")
    assert MemoryRevision.objects.for_user(alice).count() == 0
