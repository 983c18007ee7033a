"""Changing a note keeps its id, its history, and search in step."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.ids import uuid7
from apps.memory.models import Memory, MemoryRevision, Origin, Status, Trust
from apps.memory.notes import revisions
from apps.memory.notes.as_of import texts_at
from apps.memory.notes.changes import cycle_advance, memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import memory_supersede
from apps.memory.notes.revisions import BY_ASSISTANT, Change
from apps.memory.notes.selectors import memory_get, note_history
from apps.memory.notes.undoing import memory_restore, memory_tag, memory_undo
from tests.memory.conftest import MakeNote, found, found_texts


def test_the_id_stays_and_the_old_text_is_out_of_search_at_once(alice: User, note: MakeNote) -> None:
    made = note(alice, "I am allergic to shellfish.")
    changed = memory_update(user_id=alice.pk, memory_id=made.pk, content="I am only allergic to prawns.")
    assert changed.pk == made.pk
    assert found_texts(alice, "prawns") == ["I am only allergic to prawns."]
    assert all("shellfish" not in text for text in found_texts(alice, "shellfish"))


def test_the_old_text_is_kept_in_the_history(alice: User, note: MakeNote) -> None:
    made = note(alice, "I am allergic to shellfish.", importance=5)
    change = Change(actor=Origin.ASSISTANT, trust=Trust.ASSISTANT, reason="corrected")
    memory_update(
        user_id=alice.pk, memory_id=made.pk, change=change, content="Only prawns.", importance=4
    )
    newest, first = note_history(alice.pk, made.pk)
    assert (newest.version, newest.content, newest.current) == (2, "Only prawns.", True)
    assert (newest.action, newest.actor, newest.reason) == ("updated", "assistant", "corrected")
    assert (first.version, first.content, first.current) == (1, "I am allergic to shellfish.", False)
    assert (first.action, first.actor, first.at) == ("created", "user", made.created_at)
    assert (first.state["importance"], newest.state["importance"]) == (5, 4)


def test_only_the_given_fields_change(alice: User, note: MakeNote) -> None:
    made = note(alice, tags=["food"], importance=5, category="health", tier="short_term")
    memory_update(user_id=alice.pk, memory_id=made.pk, category="body")
    now = memory_get(alice.pk, made.pk)
    assert (now.content, now.tags, now.importance, now.tier) == (made.content, ["food"], 5, "short_term")
    assert now.category == "body"


def test_a_change_that_changes_nothing_leaves_no_trace(alice: User, note: MakeNote) -> None:
    made = note(alice, tags=["food"])
    memory_update(user_id=alice.pk, memory_id=made.pk, content=made.content, tags=["food"])
    memory_update(user_id=alice.pk, memory_id=made.pk)
    assert MemoryRevision.objects.for_user(alice).count() == 0
    assert memory_get(alice.pk, made.pk).updated_at == made.updated_at


def test_a_bad_change_changes_nothing(alice: User, note: MakeNote) -> None:
    made = note(alice)
    with pytest.raises(InvalidInput):
        memory_update(user_id=alice.pk, memory_id=made.pk, content="New.", importance=9)
    assert memory_get(alice.pk, made.pk).content == made.content
    assert len(note_history(alice.pk, made.pk)) == 1


def test_validity_is_checked_against_what_the_note_has(alice: User, note: MakeNote) -> None:
    made = note(alice, valid_from="2026-05-01")
    with pytest.raises(InvalidInput):
        memory_update(user_id=alice.pk, memory_id=made.pk, valid_to="2026-04-01")
    assert memory_get(alice.pk, made.pk).valid_to is None


def test_somebody_elses_note_cannot_be_changed(alice: User, bob: User, note: MakeNote) -> None:
    made = note(alice)
    for change in (memory_update, memory_archive, memory_delete, memory_restore):
        with pytest.raises(NotFound):
            change(user_id=bob.pk, memory_id=made.pk)
    with pytest.raises(NotFound):
        memory_undo(user_id=bob.pk, memory_id=made.pk, version=1)
    assert memory_get(alice.pk, made.pk).content == made.content


def test_an_unknown_note_cannot_be_changed(alice: User) -> None:
    with pytest.raises(NotFound):
        memory_update(user_id=alice.pk, memory_id=uuid7(), content="New.")


def test_a_corrected_note_is_as_fresh_as_a_new_one(alice: User, note: MakeNote) -> None:
    made = note(alice)
    for _ in range(100):
        cycle_advance(user_id=alice.pk)
    assert memory_get(alice.pk, made.pk).present == pytest.approx(0.4)
    memory_update(user_id=alice.pk, memory_id=made.pk, content="Corrected.")
    assert memory_get(alice.pk, made.pk).present == pytest.approx(0.9)


def test_sorting_a_note_anew_does_not_refresh_it(alice: User, note: MakeNote) -> None:
    made = note(alice)
    for _ in range(100):
        cycle_advance(user_id=alice.pk)
    memory_update(user_id=alice.pk, memory_id=made.pk, tags=["health"])
    assert memory_get(alice.pk, made.pk).present == pytest.approx(0.4)


def test_another_tier_brings_its_priority_and_decay(alice: User, note: MakeNote) -> None:
    made = note(alice)
    memory_update(user_id=alice.pk, memory_id=made.pk, tier="short_term")
    now = memory_get(alice.pk, made.pk)
    assert (now.present, now.decay_rate) == (0.6, 0.02)


def test_a_priority_set_by_hand_counts_from_now(alice: User, note: MakeNote) -> None:
    made = note(alice)
    for _ in range(10):
        cycle_advance(user_id=alice.pk)
    memory_update(user_id=alice.pk, memory_id=made.pk, priority=0.5)
    cycle_advance(user_id=alice.pk)
    assert memory_get(alice.pk, made.pk).present == pytest.approx(0.495)


def test_the_priority_a_note_began_with_can_be_given_again(alice: User, note: MakeNote) -> None:
    made = note(alice)
    for _ in range(10):
        cycle_advance(user_id=alice.pk)
    memory_update(user_id=alice.pk, memory_id=made.pk, priority=made.priority)
    assert memory_get(alice.pk, made.pk).present == pytest.approx(made.priority)


def test_undo_brings_a_version_back_and_is_itself_in_the_history(alice: User, note: MakeNote) -> None:
    made = note(alice, "First.", tags=["a"], valid_to="2030-01-01")
    memory_update(user_id=alice.pk, memory_id=made.pk, content="Second.", tags=["b"], valid_to=None)
    memory_update(user_id=alice.pk, memory_id=made.pk, content="Third.")
    back = memory_undo(user_id=alice.pk, memory_id=made.pk, version=1)
    assert (back.content, back.tags, back.valid_to) == (
        "First.",
        ["a"],
        datetime(2030, 1, 1, tzinfo=UTC),
    )
    versions = note_history(alice.pk, made.pk)
    assert [version.content for version in versions] == ["First.", "Third.", "Second.", "First."]
    assert versions[0].action == "undone"
    assert found_texts(alice, "first") == ["First."]
    assert "Third." not in found_texts(alice, "third")


@pytest.mark.parametrize("version", [0, 2, 99])
def test_a_version_there_never_was_cannot_come_back(alice: User, note: MakeNote, version: int) -> None:
    made = note(alice)
    with pytest.raises(NotFound):
        memory_undo(user_id=alice.pk, memory_id=made.pk, version=version)


def test_an_archived_note_is_browsable_but_not_searchable(alice: User, note: MakeNote) -> None:
    made = note(alice, "The router stands in the hall.")
    memory_archive(user_id=alice.pk, memory_id=made.pk, change=BY_ASSISTANT)
    assert memory_get(alice.pk, made.pk).status == "archived"
    assert found(alice, "router") == []
    memory_restore(user_id=alice.pk, memory_id=made.pk)
    assert memory_get(alice.pk, made.pk).status == "active"
    assert found(alice, "router") == [made.pk]


def test_the_text_of_an_earlier_time_can_be_asked_for(alice: User, note: MakeNote) -> None:
    made = note(alice, "Lives in Portland.")
    times = [timezone.now()]
    for text in ("Lives in Austin.", "Lives in Berlin."):
        memory_update(user_id=alice.pk, memory_id=made.pk, content=text)
        times.append(timezone.now())
    texts = [texts_at(alice.pk, [made.pk], moment).get(made.pk) for moment in times]
    assert texts == ["Lives in Portland.", "Lives in Austin.", None]


def test_the_text_of_an_earlier_time_is_the_users_own(alice: User, bob: User, note: MakeNote) -> None:
    made = note(alice, "Before.")
    moment = timezone.now()
    memory_update(user_id=alice.pk, memory_id=made.pk, content="After.")
    assert texts_at(bob.pk, [made.pk], moment) == {}


@pytest.mark.django_db(transaction=True)
async def test_changes_at_the_same_time_all_happen_one_after_the_other(
    alice: User, note: MakeNote
) -> None:
    made = await in_db(note, alice, "Version 1.")
    changes = (
        in_db(memory_update, user_id=alice.pk, memory_id=made.pk, content=f"Version {number}.")
        for number in range(2, 12)
    )
    await asyncio.gather(*changes)
    versions = await in_db(note_history, alice.pk, made.pk)
    assert [version.version for version in versions] == list(range(11, 0, -1))
    assert {version.content for version in versions} == {f"Version {number}." for number in range(1, 12)}
    assert await in_db(found_texts, alice, "version") == [versions[0].content]


@pytest.mark.django_db(transaction=True)
async def test_tags_that_are_given_at_the_same_time_are_all_kept(alice: User, note: MakeNote) -> None:
    made = await in_db(note, alice, tags=["old"])
    tags = [f"tag {number}" for number in range(10)]
    giving = (in_db(memory_tag, user_id=alice.pk, memory_id=made.pk, tag=tag) for tag in tags)
    await asyncio.gather(*giving)
    assert sorted((await in_db(memory_get, alice.pk, made.pk)).tags) == ["old", *tags]


def test_a_long_reason_is_cut(alice: User, note: MakeNote) -> None:
    made = note(alice)
    memory_update(
        user_id=alice.pk,
        memory_id=made.pk,
        change=Change(actor=Origin.USER, trust=Trust.USER, reason="r" * 500),
        content="New.",
    )
    assert note_history(alice.pk, made.pk)[0].reason == "r" * 200


def test_a_change_moves_the_time_of_change_alone(alice: User, note: MakeNote) -> None:
    made = note(alice)
    Memory.objects.for_user(alice).update(updated_at=made.created_at - timedelta(days=1))
    memory_update(user_id=alice.pk, memory_id=made.pk, content="New.")
    now = memory_get(alice.pk, made.pk)
    assert now.created_at == made.created_at
    assert now.updated_at > made.created_at


def test_what_was_replaced_becomes_active_by_restoring_alone(alice: User, note: MakeNote) -> None:
    """Else both notes would hold at once, until the worker ends the old one again."""
    old = note(alice, "The user lives in Lisbon.")
    memory_supersede(user_id=alice.pk, memory_id=old.pk, content="The user lives in Oslo.")
    with pytest.raises(Conflict) as refused:
        memory_update(user_id=alice.pk, memory_id=old.pk, status="active")
    assert refused.value.code == "replaced"
    memory_update(user_id=alice.pk, memory_id=old.pk, tags=["home"])
    assert memory_get(alice.pk, old.pk).status == Status.SUPERSEDED


@pytest.mark.parametrize("days", [None, 30])
def test_what_was_replaced_holds_on_by_restoring_alone(
    alice: User, note: MakeNote, days: int | None
) -> None:
    old = note(alice, "The user lives in Lisbon.")
    memory_supersede(user_id=alice.pk, memory_id=old.pk, content="The user lives in Oslo.")
    until = days and timezone.now() + timedelta(days=days)
    with pytest.raises(Conflict) as refused:
        memory_update(user_id=alice.pk, memory_id=old.pk, valid_to=until)
    assert (refused.value.code, refused.value.extra["field"]) == ("replaced", "valid_to")
    assert found_texts(alice, "Where does the user live?") == ["The user lives in Oslo."]
    earlier = memory_get(alice.pk, old.pk).created_at + timedelta(microseconds=1)
    changed = memory_update(user_id=alice.pk, memory_id=old.pk, valid_to=earlier)
    assert (changed.status, changed.valid_to) == (Status.SUPERSEDED, earlier)


def test_what_was_replaced_and_then_archived_becomes_active_by_restoring_alone(
    alice: User, note: MakeNote
) -> None:
    old = note(alice, "The user lives in Lisbon.")
    new = memory_supersede(user_id=alice.pk, memory_id=old.pk, content="The user lives in Oslo.")
    memory_update(user_id=alice.pk, memory_id=old.pk, status="archived")
    with pytest.raises(Conflict) as refused:
        memory_update(user_id=alice.pk, memory_id=old.pk, status="active")
    assert refused.value.code == "replaced"
    assert memory_restore(user_id=alice.pk, memory_id=old.pk).status == Status.SUPERSEDED
    assert memory_restore(user_id=alice.pk, memory_id=old.pk).status == Status.ACTIVE
    assert not Memory.objects.for_user(alice).filter(pk=new.pk).exists()


def test_what_waited_for_review_when_it_was_archived_waits_again(alice: User, note: MakeNote) -> None:
    made = note(alice, status="pending")
    memory_update(user_id=alice.pk, memory_id=made.pk, status="archived", tags=["home"])
    assert note_history(alice.pk, made.pk)[0].action == "archived"
    assert memory_restore(user_id=alice.pk, memory_id=made.pk).status == Status.PENDING


def test_the_oldest_versions_go_where_there_are_very_many(
    alice: User, note: MakeNote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program may change a note for ever; what is kept stays true and can be gone back to."""
    monkeypatch.setattr(revisions, "MAX_REVISIONS", 3)
    made = note(alice, "Version 1.")
    for number in range(2, 8):
        memory_update(user_id=alice.pk, memory_id=made.pk, content=f"Version {number}.")
    kept = note_history(alice.pk, made.pk)
    assert [(version.version, version.content) for version in kept] == [
        (number, f"Version {number}.") for number in (7, 6, 5, 4)
    ]
    assert (kept[-1].action_label, kept[0].current) == ("The oldest that is kept", True)
    oldest = kept[-1]
    assert texts_at(alice.pk, [made.pk], oldest.at + timedelta(microseconds=1)) == {}
    assert memory_undo(user_id=alice.pk, memory_id=made.pk, version=5).content == "Version 5."
    with pytest.raises(NotFound):
        memory_undo(user_id=alice.pk, memory_id=made.pk, version=1)
