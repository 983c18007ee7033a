"""A note that takes the place of another, and the way back."""

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from apps.accounts.models import Review, User
from apps.accounts.services import preferences_update
from apps.core.errors import Conflict, NotFound
from apps.core.jobs.worker import sweeps
from apps.memory.models import Memory, MemoryEdge, MemoryRevision, Origin, Status, Trust
from apps.memory.notes.changes import (
    memories_erase,
    memory_archive,
    memory_delete,
    memory_update,
    plans_call_off,
)
from apps.memory.notes.joining import edge_create, memory_supersede, superseded_due
from apps.memory.notes.revisions import BY_ASSISTANT, Change
from apps.memory.notes.selectors import note_history
from apps.memory.notes.undoing import memory_restore, memory_undo
from apps.memory.purge import memory_purge
from apps.memory.similarity import NOTES
from apps.search.documents import Scope
from apps.search.selectors import search
from tests.failing import fails_first
from tests.memory.conftest import MakeNote, found_texts

pytestmark = pytest.mark.django_db

BY_CAPTURE = Change(actor=Origin.EXTRACTION, trust=Trust.USER, reason="said so")


def replace(user: User, old: Memory, content: str, **options: object) -> Memory:
    values = {"change": BY_CAPTURE, **options}
    return memory_supersede(
        user_id=user.pk,
        memory_id=old.pk,
        content=content,
        **values,  # type: ignore[arg-type]
    )


def fresh(note: Memory) -> Memory:
    return Memory.everything.get(pk=note.pk)


def test_the_old_note_gives_way(alice: User, note: MakeNote) -> None:
    old = note(alice, "The user lives in Lisbon.", tags=["home"], importance=5)
    new = replace(alice, old, "The user lives in Oslo.")
    before = fresh(old)
    assert (before.status, before.superseded_by_id, before.valid_to) == (
        Status.SUPERSEDED,
        new.pk,
        new.created_at,
    )
    assert (new.status, new.tags, new.importance) == (Status.ACTIVE, ["home"], 5)
    assert found_texts(alice, "Where does the user live?") == ["The user lives in Oslo."]
    edge = MemoryEdge.objects.for_user(alice).get()
    assert (edge.source_id, edge.target_id, edge.relation) == (new.pk, old.pk, "supersedes")
    newest, _ = note_history(alice.pk, old.pk)
    assert (newest.action, newest.actor, newest.reason) == ("superseded", "extraction", "said so")


def test_what_cannot_be_superseded_keeps_nobody_elses_notes_from_it(
    alice: User, bob: User, note: MakeNote, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = timezone.now() + timedelta(days=7)
    for user in (alice, bob):
        replace(user, note(user, "The user lives in Lisbon."), "Oslo", valid_from=later)
    due = Memory.objects.unscoped().filter(superseded_by__isnull=False)
    due.update(valid_to=timezone.now() - timedelta(seconds=1))
    monkeypatch.setattr("apps.memory.notes.joining.plans_call_off", fails_first(plans_call_off))
    with pytest.raises(ValueError, match="broken"):
        superseded_due()
    assert due.filter(status=Status.SUPERSEDED).count() == 1
    assert superseded_due() == 1


def test_what_was_replaced_already_stands_for_the_newest(alice: User, note: MakeNote) -> None:
    first = note(alice, "The user lives in Lisbon.")
    second = replace(alice, first, "The user lives in Madrid.")
    third = replace(alice, first, "The user lives in Oslo.")
    assert fresh(second).superseded_by_id == third.pk
    assert fresh(first).superseded_by_id == second.pk
    assert found_texts(alice, "lives") == ["The user lives in Oslo."]


def test_what_was_replaced_and_then_archived_stands_for_the_newest_too(
    alice: User, note: MakeNote
) -> None:
    first = note(alice, "The user lives in Lisbon.")
    second = replace(alice, first, "The user lives in Madrid.")
    memory_archive(user_id=alice.pk, memory_id=first.pk)
    third = replace(alice, first, "The user lives in Oslo.")
    assert (fresh(first).status, fresh(first).superseded_by_id) == (Status.ARCHIVED, second.pk)
    assert fresh(second).superseded_by_id == third.pk
    assert found_texts(alice, "lives") == ["The user lives in Oslo."]


def test_a_chain_that_ends_in_a_deleted_note_is_told(alice: User, note: MakeNote) -> None:
    first = note(alice, "The user lives in Lisbon.")
    second = replace(alice, first, "The user lives in Madrid.")
    memory_delete(user_id=alice.pk, memory_id=second.pk)
    with pytest.raises(Conflict) as error:
        replace(alice, first, "The user lives in Oslo.")
    assert error.value.code == "replaced"
    assert Memory.objects.for_user(alice).count() == 1


def test_somebody_elses_note_cannot_be_replaced(alice: User, bob: User, note: MakeNote) -> None:
    with pytest.raises(NotFound):
        replace(bob, note(alice), "mine now")
    assert not Memory.objects.for_user(bob).exists()


def test_what_holds_only_from_later_lets_the_old_note_hold_until_then(
    alice: User, note: MakeNote
) -> None:
    old = note(alice, "The user lives in Lisbon.")
    later = timezone.now() + timedelta(days=7)
    replace(alice, old, "The user lives in Oslo.", valid_from=later)
    assert found_texts(alice, "lives") == ["The user lives in Lisbon."]
    assert superseded_due() == 0
    Memory.objects.unscoped().filter(pk=old.pk).update(valid_to=timezone.now() - timedelta(seconds=1))
    assert superseded_due() == 1
    assert fresh(old).status == Status.SUPERSEDED


def test_the_worker_ends_what_is_replaced_by_now(alice: User, note: MakeNote) -> None:
    old = note(alice, "The user lives in Lisbon.")
    replace(alice, old, "The user lives in Oslo.", valid_from=timezone.now() + timedelta(days=7))
    Memory.objects.unscoped().filter(pk=old.pk).update(valid_to=timezone.now() - timedelta(seconds=1))
    (sweep,) = [entry for entry in sweeps() if entry.name == "memory_superseded"]
    sweep.function()
    assert fresh(old).status == Status.SUPERSEDED


def put_away(*, user_id: UUID, memory_id: UUID) -> None:
    memory_update(user_id=user_id, memory_id=memory_id, status="archived")


def purge(*, user_id: UUID, memory_id: UUID) -> None:
    memory_purge(user_id=user_id, ids=[memory_id])


@pytest.mark.parametrize("call_off", [memory_delete, memory_archive, put_away, purge])
def test_a_plan_that_is_called_off_ends_nothing(
    alice: User, note: MakeNote, call_off: Callable[..., object]
) -> None:
    old = note(alice, "The user lives in Lisbon.")
    new = replace(alice, old, "The user lives in Oslo.", valid_from=timezone.now() + timedelta(days=7))
    call_off(user_id=alice.pk, memory_id=new.pk)
    after = fresh(old)
    assert (after.status, after.superseded_by_id, after.valid_to) == (Status.ACTIVE, None, None)
    assert note_history(alice.pk, old.pk)[0].reason == "what was to replace it was put away"
    in_a_month = Scope(as_of=timezone.now() + timedelta(days=30), sources=NOTES.sources)
    hits = search(alice.pk, "lives", scope=in_a_month)
    assert [hit.text for hit in hits] == ["The user lives in Lisbon."]


def test_a_plan_leaves_the_end_that_a_note_had_when_it_is_called_off(
    alice: User, note: MakeNote
) -> None:
    in_a_year = timezone.now() + timedelta(days=365)
    old = note(alice, "The user lives in Lisbon.", valid_to=in_a_year)
    new = replace(alice, old, "The user lives in Oslo.", valid_from=timezone.now() + timedelta(days=7))
    memory_delete(user_id=alice.pk, memory_id=new.pk)
    assert fresh(old).valid_to == in_a_year


@pytest.mark.parametrize("call_off", [memory_delete, put_away])
def test_a_plan_that_is_brought_back_ends_the_note_after_all(
    alice: User, note: MakeNote, call_off: Callable[..., object]
) -> None:
    old, later = note(alice, "The user lives in Lisbon."), timezone.now() + timedelta(days=7)
    new = replace(alice, old, "The user lives in Oslo.", valid_from=later)
    call_off(user_id=alice.pk, memory_id=new.pk)
    memory_restore(user_id=alice.pk, memory_id=new.pk)
    assert (fresh(old).superseded_by_id, fresh(old).valid_to) == (new.pk, later)
    memory_restore(user_id=alice.pk, memory_id=old.pk)
    memory_undo(user_id=alice.pk, memory_id=old.pk, version=1)
    assert (fresh(old).superseded_by_id, fresh(old).valid_to) == (None, None)
    assert fresh(new).status == Status.DELETED


def test_a_note_ends_when_what_replaces_it_begins_though_that_is_put_off_or_brought_forward(
    alice: User, note: MakeNote
) -> None:
    in_a_year = timezone.now() + timedelta(days=365)
    old = note(alice, "The user lives in Lisbon.", valid_to=in_a_year)
    now = timezone.now()
    soon, later = now + timedelta(days=7), now + timedelta(days=30)
    new = replace(alice, old, "The user lives in Oslo.", valid_from=soon)
    memory_update(user_id=alice.pk, memory_id=new.pk, valid_from=later)
    assert (fresh(old).status, fresh(old).valid_to) == (Status.ACTIVE, later)
    memory_update(user_id=alice.pk, memory_id=new.pk, valid_from=now)
    assert (fresh(old).status, fresh(old).valid_to) == (Status.SUPERSEDED, now)
    assert found_texts(alice, "lives") == ["The user lives in Oslo."]
    memory_update(user_id=alice.pk, memory_id=new.pk, valid_from=soon)
    assert (fresh(old).status, fresh(old).valid_to) == (Status.ACTIVE, soon)
    assert found_texts(alice, "lives") == ["The user lives in Lisbon."]
    memory_delete(user_id=alice.pk, memory_id=new.pk)
    assert (fresh(old).superseded_by_id, fresh(old).valid_to) == (None, in_a_year)


def test_what_is_to_be_replaced_holds_no_longer_than_until_then(alice: User, note: MakeNote) -> None:
    old, soon = note(alice, "The user lives in Lisbon."), timezone.now() + timedelta(days=7)
    replace(alice, old, "The user lives in Oslo.", valid_from=soon)
    for end in (None, soon + timedelta(days=1)):
        with pytest.raises(Conflict):
            memory_update(user_id=alice.pk, memory_id=old.pk, valid_to=end)
    memory_update(user_id=alice.pk, memory_id=old.pk, valid_to=soon - timedelta(days=1), importance=5)
    assert fresh(old).importance == 5


def test_a_note_of_a_time_ahead_stays_one_where_its_replacement_is_put_off(
    alice: User, note: MakeNote
) -> None:
    ahead = timezone.now() + timedelta(days=20)
    old = note(alice, "The user lives in Rome.", valid_from=ahead)
    new = replace(alice, old, "The user lives in Oslo.")
    assert (fresh(old).status, fresh(old).valid_from) == (Status.SUPERSEDED, None)
    later = ahead + timedelta(days=10)
    memory_update(user_id=alice.pk, memory_id=new.pk, valid_from=later)
    now = fresh(old)
    assert (now.status, now.valid_from, now.valid_to) == (Status.ACTIVE, ahead, later)


def test_a_note_that_was_replaced_holds_on_where_that_is_put_off(alice: User, note: MakeNote) -> None:
    old, later = note(alice, "The user lives in Lisbon."), timezone.now() + timedelta(days=7)
    new = replace(alice, old, "The user lives in Oslo.")
    memory_update(user_id=alice.pk, memory_id=new.pk, valid_from=later)
    assert found_texts(alice, "lives") == ["The user lives in Lisbon."]
    memory_undo(user_id=alice.pk, memory_id=new.pk, version=1)
    assert found_texts(alice, "lives") == ["The user lives in Oslo."]
    memory_restore(user_id=alice.pk, memory_id=old.pk)
    assert (fresh(old).status, fresh(old).valid_to) == (Status.ACTIVE, None)
    assert fresh(new).status == Status.DELETED


def test_a_link_alone_plans_nothing(alice: User, note: MakeNote) -> None:
    later = timezone.now() + timedelta(days=7)
    old, new = note(alice, "Lives in Lisbon."), note(alice, "Lives in Oslo.", valid_from=later)
    edge_create(user_id=alice.pk, source_id=new.pk, target_id=old.pk, relation="supersedes")
    memory_archive(user_id=alice.pk, memory_id=new.pk)
    memory_restore(user_id=alice.pk, memory_id=new.pk)
    assert (fresh(old).superseded_by_id, fresh(old).valid_to) == (None, None)


def test_the_sweep_ends_nothing_for_what_is_not_there(alice: User, note: MakeNote) -> None:
    old, new = note(alice, "The user lives in Lisbon."), note(alice, "The user lives in Oslo.")
    memory_delete(user_id=alice.pk, memory_id=new.pk)
    past = timezone.now() - timedelta(seconds=1)
    Memory.everything.filter(pk=old.pk).update(superseded_by=new.pk, valid_to=past)
    assert superseded_due() == 0
    assert (fresh(old).status, fresh(old).superseded_by_id) == (Status.ACTIVE, None)
    assert found_texts(alice, "lives") == ["The user lives in Lisbon."]


def test_undoing_a_replacement_that_has_begun_meanwhile_leaves_one_note(
    alice: User, note: MakeNote
) -> None:
    old = note(alice, "The user lives in Lisbon.")
    new = replace(alice, old, "The user lives in Oslo.", valid_from=timezone.now() + timedelta(days=7))
    past = timezone.now() - timedelta(seconds=1)
    Memory.objects.unscoped().filter(pk=old.pk).update(valid_to=past)
    Memory.objects.unscoped().filter(pk=new.pk).update(valid_from=past)
    superseded_due()
    assert note_history(alice.pk, old.pk)[0].actor == Origin.ASSISTANT
    memory_restore(user_id=alice.pk, memory_id=old.pk)
    assert (fresh(old).status, fresh(new).status) == (Status.ACTIVE, Status.DELETED)
    assert found_texts(alice, "lives") == ["The user lives in Lisbon."]


def test_untrusted_words_replace_nothing(alice: User, note: MakeNote) -> None:
    old = note(alice, "The user lives in Lisbon.")
    foreign = Change(actor=Origin.EXTRACTION, trust=Trust.UNTRUSTED)
    proposal = replace(alice, old, "The user lives in Oslo.", change=foreign)
    assert (proposal.status, proposal.review_reason) == (Status.PENDING, "untrusted")
    assert (proposal.proposed_action, proposal.proposed_target_id) == ("supersede", old.pk)
    assert fresh(old).status == Status.ACTIVE
    assert not MemoryEdge.objects.for_user(alice).exists()
    again = replace(alice, old, "The user lives in Oslo.", change=foreign)
    assert again.pk == proposal.pk


def test_who_reviews_everything_is_asked(alice: User, note: MakeNote) -> None:
    preferences_update(user_id=alice.pk, review=str(Review.EVERYTHING))
    old = note(alice, "The user lives in Lisbon.")
    assert replace(alice, old, "The user lives in Oslo.").review_reason == "everything"
    by_hand = memory_supersede(user_id=alice.pk, memory_id=old.pk, content="I live in Oslo.")
    assert by_hand.status == Status.ACTIVE


def test_undoing_brings_the_old_note_back_in_place_of_the_new(alice: User, note: MakeNote) -> None:
    old = note(alice, "The user lives in Lisbon.")
    new = replace(alice, old, "The user lives in Oslo.")
    memory_restore(user_id=alice.pk, memory_id=old.pk)
    back = fresh(old)
    assert (back.status, back.valid_to, back.superseded_by_id) == (Status.ACTIVE, None, None)
    assert fresh(new).status == Status.DELETED
    assert not MemoryEdge.objects.for_user(alice).exists()
    assert found_texts(alice, "lives") == ["The user lives in Lisbon."]


def test_going_back_to_a_version_that_was_replaced_already_brings_nothing_back(
    alice: User, note: MakeNote
) -> None:
    old = note(alice, "The user lives in Lisbon.")
    new = replace(alice, old, "The user lives in Oslo.")
    memory_update(user_id=alice.pk, memory_id=old.pk, tags=["home"])
    memory_undo(user_id=alice.pk, memory_id=old.pk, version=2)
    back = fresh(old)
    assert (back.tags, back.status, back.superseded_by_id) == ([], Status.SUPERSEDED, new.pk)
    assert back.valid_to == new.created_at
    assert found_texts(alice, "lives") == ["The user lives in Oslo."]


def test_undoing_an_edit_keeps_what_is_planned(alice: User, note: MakeNote) -> None:
    old = note(alice, "The user lives in Lisbon.")
    later = timezone.now() + timedelta(days=7)
    new = replace(alice, old, "The user lives in Oslo.", valid_from=later)
    memory_update(user_id=alice.pk, memory_id=old.pk, content="The user lives in Lisbon, Portugal.")
    memory_undo(user_id=alice.pk, memory_id=old.pk, version=2)
    back = fresh(old)
    assert (back.content, back.superseded_by_id, back.valid_to) == (old.content, new.pk, later)
    assert fresh(new).status == Status.ACTIVE


def test_undoing_in_the_middle_of_a_chain_says_what_to_undo_first(alice: User, note: MakeNote) -> None:
    first = note(alice, "The user lives in Lisbon.")
    second = replace(alice, first, "The user lives in Madrid.")
    replace(alice, second, "The user lives in Oslo.")
    with pytest.raises(Conflict):
        memory_undo(user_id=alice.pk, memory_id=first.pk, version=1)
    memory_restore(user_id=alice.pk, memory_id=second.pk)
    memory_restore(user_id=alice.pk, memory_id=first.pk)
    assert found_texts(alice, "lives") == ["The user lives in Lisbon."]


def test_undoing_works_where_the_newer_note_is_gone(alice: User, note: MakeNote) -> None:
    old = note(alice, "The user lives in Lisbon.")
    new = replace(alice, old, "The user lives in Oslo.")
    memories_erase(user_id=alice.pk, memory_ids=[new.pk])
    assert memory_undo(user_id=alice.pk, memory_id=old.pk, version=1).status == Status.ACTIVE


def test_the_trust_of_a_replacement_is_that_of_its_own_words(alice: User, note: MakeNote) -> None:
    old = note(alice, "The user lives in Lisbon.", change=Change(actor=Origin.USER, trust=Trust.USER))
    assistants = Change(actor=Origin.EXTRACTION, trust=Trust.ASSISTANT)
    assert replace(alice, old, "The user lives in Oslo.", change=assistants).trust == Trust.ASSISTANT


def test_an_update_by_the_assistant_lowers_the_trust_and_one_by_hand_raises_it(
    alice: User, note: MakeNote
) -> None:
    made = note(alice, "The user lives in Lisbon.")
    memory_update(
        user_id=alice.pk, memory_id=made.pk, change=BY_ASSISTANT, content="The user lives in Oslo."
    )
    assert fresh(made).trust == Trust.ASSISTANT
    memory_update(user_id=alice.pk, memory_id=made.pk, tags=["home"])
    assert fresh(made).trust == Trust.ASSISTANT
    memory_update(user_id=alice.pk, memory_id=made.pk, content="I live in Oslo.")
    assert fresh(made).trust == Trust.USER
    memory_undo(user_id=alice.pk, memory_id=made.pk, version=2)
    assert fresh(made).trust == Trust.ASSISTANT


def test_a_note_that_waits_is_not_changed_by_the_assistant(alice: User, note: MakeNote) -> None:
    made = note(alice, "The user lives in Lisbon.", status="pending")
    with pytest.raises(Conflict):
        memory_update(
            user_id=alice.pk, memory_id=made.pk, change=BY_ASSISTANT, content="x", status="active"
        )
    with pytest.raises(Conflict):
        replace(alice, made, "The user lives in Oslo.")
    assert not MemoryRevision.objects.for_user(alice).exists()
