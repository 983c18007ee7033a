"""Several notes become one, and apart again."""

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.ids import uuid7
from apps.memory.models import Memory, MemoryEdge, Origin, Status, Trust
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import memory_absorb, memory_merge, memory_supersede
from apps.memory.notes.revisions import Change
from apps.memory.notes.selectors import note_history
from apps.memory.notes.undoing import memory_restore, memory_undo
from tests.memory.conftest import MakeNote, found_texts

pytestmark = pytest.mark.django_db

ASSISTANTS = Change(actor=Origin.EXTRACTION, trust=Trust.ASSISTANT)
OTHERS = Change(actor=Origin.EXTRACTION, trust=Trust.UNTRUSTED)


def fresh(note: Memory) -> Memory:
    return Memory.everything.get(pk=note.pk)


def test_merging_keeps_one_note_with_what_all_had(alice: User, note: MakeNote) -> None:
    into = note(alice, "The user likes tea.", tags=["drink"], importance=2)
    other = note(alice, "The user drinks green tea.", tags=["Drink", "green"], importance=4)
    assistants = note(
        alice, "Tea in the morning.", change=Change(actor=Origin.ASSISTANT, trust=Trust.ASSISTANT)
    )
    merged = memory_merge(
        user_id=alice.pk,
        into_id=into.pk,
        from_ids=[other.pk, assistants.pk],
        content="The user drinks green tea every morning.",
    )
    assert merged.pk == into.pk
    assert (merged.tags, merged.importance, merged.trust) == (["drink", "green"], 4, Trust.ASSISTANT)
    assert found_texts(alice, "tea") == ["The user drinks green tea every morning."]
    for gone in (fresh(other), fresh(assistants)):
        assert (gone.status, gone.superseded_by_id) == (Status.SUPERSEDED, into.pk)
    assert MemoryEdge.objects.for_user(alice).filter(source=into, relation="supersedes").count() == 2


def test_the_one_note_holds_as_long_as_any_of_them(alice: User, note: MakeNote) -> None:
    now = timezone.now()
    start, ended, later = now - timedelta(days=30), now - timedelta(days=1), now + timedelta(days=9)
    into = note(alice, "Works on the harbour project.", valid_from=start, valid_to=ended)
    other = note(alice, "Moors at pier four.", valid_from=start - timedelta(days=1), valid_to=later)
    merged = memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[other.pk])
    assert (merged.valid_from, merged.valid_to) == (start - timedelta(days=1), later)

    endless = note(alice, "Is allergic to penicillin.")
    memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[endless.pk])
    assert fresh(into).valid_to is None
    assert "penicillin" in found_texts(alice, "penicillin allergy")[0]


def test_a_merge_into_a_note_that_is_to_be_replaced_leaves_it_at_that(
    alice: User, note: MakeNote
) -> None:
    into, other = note(alice, "The user lives in Lisbon."), note(alice, "The user likes Lisbon.")
    later = timezone.now() + timedelta(days=7)
    memory_supersede(user_id=alice.pk, memory_id=into.pk, content="Lives in Oslo.", valid_from=later)
    memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[other.pk])
    assert fresh(into).valid_to == later


def test_without_a_text_all_texts_are_kept(alice: User, note: MakeNote) -> None:
    into, other = note(alice, "The user likes tea."), note(alice, "The user likes cake.")
    merged = memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[other.pk])
    assert merged.content == "The user likes tea.\nThe user likes cake."


@pytest.mark.parametrize("text", ["The user likes tea.", "Tea it is."])
def test_undoing_a_merge_brings_every_note_back(alice: User, note: MakeNote, text: str) -> None:
    into, other = note(alice, "The user likes tea."), note(alice, "The user likes cake.")
    memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[other.pk], content=text)
    memory_undo(user_id=alice.pk, memory_id=into.pk, version=1)
    assert sorted(found_texts(alice, "likes")) == ["The user likes cake.", "The user likes tea."]
    assert fresh(other).superseded_by_id is None
    assert fresh(other).valid_to is None
    assert not MemoryEdge.objects.for_user(alice).exists()


def test_undoing_a_merge_keeps_what_is_planned(alice: User, note: MakeNote) -> None:
    planned, into = note(alice, "The user lives in Lisbon."), note(alice, "The user likes Lisbon.")
    later = timezone.now() + timedelta(days=7)
    oslo = memory_supersede(
        user_id=alice.pk, memory_id=planned.pk, content="The user lives in Oslo.", valid_from=later
    )
    memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[planned.pk])
    memory_undo(user_id=alice.pk, memory_id=into.pk, version=1)
    back = fresh(planned)
    assert (back.status, back.superseded_by_id, back.valid_to) == (Status.ACTIVE, oslo.pk, later)


def test_one_of_the_merged_notes_can_come_back_alone(alice: User, note: MakeNote) -> None:
    into, other, third = (note(alice, f"The user likes {what}.") for what in ("tea", "cake", "jam"))
    memory_merge(
        user_id=alice.pk,
        into_id=into.pk,
        from_ids=[other.pk, third.pk],
        content="The user likes tea and cake.",
    )
    memory_restore(user_id=alice.pk, memory_id=third.pk)
    assert sorted(found_texts(alice, "likes")) == ["The user likes jam.", "The user likes tea and cake."]
    memory_undo(user_id=alice.pk, memory_id=into.pk, version=1)
    assert len(found_texts(alice, "likes")) == 3


def test_what_cannot_be_merged_is_told(alice: User, bob: User, note: MakeNote) -> None:
    mine, other, foreign = note(alice, "tea"), note(alice, "cake"), note(bob, "jam")
    merge = memory_merge
    with pytest.raises(NotFound):
        merge(user_id=alice.pk, into_id=mine.pk, from_ids=[foreign.pk])
    with pytest.raises(NotFound):
        merge(user_id=alice.pk, into_id=uuid7(), from_ids=[mine.pk])
    for wrong in ([], [mine.pk], [other.pk, other.pk]):
        with pytest.raises(InvalidInput):
            merge(user_id=alice.pk, into_id=mine.pk, from_ids=wrong)
    with pytest.raises(InvalidInput):
        merge(user_id=alice.pk, into_id=mine.pk, from_ids=[other.pk], content=" ")
    memory_archive(user_id=alice.pk, memory_id=other.pk)
    with pytest.raises(Conflict):
        merge(user_id=alice.pk, into_id=mine.pk, from_ids=[other.pk])
    assert fresh(mine).content == "tea"
    assert fresh(foreign).status == Status.ACTIVE


def test_what_is_said_again_makes_a_note_more_important(alice: User, note: MakeNote) -> None:
    made = note(alice, "The user likes tea.", importance=4, tags=["drink"])
    for _ in range(3):
        memory_absorb(
            user_id=alice.pk,
            memory_id=made.pk,
            content=None,
            tags=["hot"],
            change=ASSISTANTS,
        )
    same = fresh(made)
    assert (same.importance, same.content, same.tags) == (5, "The user likes tea.", ["drink", "hot"])
    assert same.trust == Trust.USER


def test_a_merged_text_is_trusted_as_the_least_of_both(alice: User, note: MakeNote) -> None:
    made = note(alice, "The user likes tea.")
    memory_absorb(
        user_id=alice.pk,
        memory_id=made.pk,
        content="The user likes green tea.",
        change=ASSISTANTS,
    )
    assert (fresh(made).content, fresh(made).trust) == ("The user likes green tea.", Trust.ASSISTANT)
    memory_undo(user_id=alice.pk, memory_id=made.pk, version=1)
    assert (fresh(made).content, fresh(made).trust) == ("The user likes tea.", Trust.USER)


def test_untrusted_words_only_propose(alice: User, note: MakeNote) -> None:
    made = note(alice, "The user likes tea.")
    absorb = memory_absorb
    same = absorb(user_id=alice.pk, memory_id=made.pk, content=None, change=OTHERS)
    assert (same.pk, fresh(made).importance) == (made.pk, 3)
    text = "The user likes tea from evil.example."
    proposal = absorb(user_id=alice.pk, memory_id=made.pk, content=text, change=OTHERS)
    assert (proposal.status, proposal.proposed_action) == (Status.PENDING, "merge")
    assert (fresh(made).content, fresh(made).trust) == ("The user likes tea.", Trust.USER)


@pytest.mark.parametrize("text", ["The user likes tea and cake.", "The user likes tea."])
def test_redoing_an_undone_merge_leaves_one_note(alice: User, note: MakeNote, text: str) -> None:
    into, other = note(alice, "The user likes tea."), note(alice, "The user likes cake.")
    memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[other.pk], content=text)
    for _ in range(2):
        memory_undo(user_id=alice.pk, memory_id=into.pk, version=1)
        assert len(found_texts(alice, "likes")) == 2
        memory_undo(user_id=alice.pk, memory_id=into.pk, version=2)
        assert found_texts(alice, "likes") == [text]
        assert (fresh(other).status, fresh(other).superseded_by_id) == (Status.SUPERSEDED, into.pk)
        assert MemoryEdge.objects.for_user(alice).filter(source=into, relation="supersedes").count() == 1


def test_redoing_a_merge_leaves_alone_what_says_something_else_by_now(
    alice: User, note: MakeNote
) -> None:
    into, other, third = (note(alice, f"The user likes {what}.") for what in ("tea", "cake", "jam"))
    memory_merge(user_id=alice.pk, into_id=into.pk, from_ids=[other.pk, third.pk])
    memory_undo(user_id=alice.pk, memory_id=into.pk, version=1)
    memory_update(user_id=alice.pk, memory_id=other.pk, content="The user likes cheesecake.")
    memory_delete(user_id=alice.pk, memory_id=third.pk)
    memory_undo(user_id=alice.pk, memory_id=into.pk, version=2)
    assert (fresh(other).status, fresh(third).status) == (Status.ACTIVE, Status.DELETED)
    assert "The user likes cheesecake." in found_texts(alice, "likes")


def test_going_back_to_what_is_there_already_writes_nothing(alice: User, note: MakeNote) -> None:
    made = note(alice, "The user likes tea.")
    memory_update(user_id=alice.pk, memory_id=made.pk, content="The user likes coffee.")
    for _ in range(2):
        memory_undo(user_id=alice.pk, memory_id=made.pk, version=1)
    assert len(note_history(alice.pk, made.pk)) == 3
