"""Review: things wait for the user's word, and what each word does."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import Review, User
from apps.accounts.services import preferences_update
from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.memory.models import Memory, MemoryEdge, Origin, Proposal, Status, Trust
from apps.memory.notes.changes import memories_erase, memory_archive, memory_update
from apps.memory.notes.creation import memory_submit, status_for
from apps.memory.notes.history import text_diff
from apps.memory.notes.joining import contradiction_resolve, edge_create, memory_absorb, memory_supersede
from apps.memory.notes.review import (
    review_accept,
    review_decide,
    review_merge,
    review_queue,
    review_reject,
    waiting_count,
)
from apps.memory.notes.revisions import BY_ASSISTANT, Change
from apps.memory.notes.selectors import NoteFilter, memories_list, open_contradictions
from apps.memory.notes.undoing import memory_restore, memory_undo
from apps.memory.pages.review import waiting_of
from apps.memory.recall.injection import surface
from apps.memory.recall.keywords import memory_recall, memory_relevant
from tests.memory.conftest import MakeNote, found_texts

pytestmark = pytest.mark.django_db

FOREIGN = Change(actor=Origin.EXTRACTION, trust=Trust.UNTRUSTED)
BY_PAGE = Change(actor=Origin.ASSISTANT, trust=Trust.UNTRUSTED)


def fresh(note: Memory) -> Memory:
    return Memory.everything.get(pk=note.pk)


def waiting(user: User, content: str = "The user lives in Oslo.") -> Memory:
    return memory_submit(user_id=user.pk, content=content, change=FOREIGN)


def proposed(user: User, note: Memory, content: str) -> Memory:
    """A change of a note that an untrusted source proposes."""
    return memory_update(user_id=user.pk, memory_id=note.pk, change=BY_PAGE, content=content)


@pytest.mark.parametrize(
    ("review", "trust", "sensitive", "expected"),
    [
        (Review.SENSITIVE, Trust.USER, False, (Status.ACTIVE, "")),
        (Review.SENSITIVE, Trust.USER, True, (Status.PENDING, "sensitive")),
        (Review.SENSITIVE, Trust.UNTRUSTED, False, (Status.PENDING, "untrusted")),
        (Review.NOTHING, Trust.ASSISTANT, True, (Status.ACTIVE, "")),
        (Review.NOTHING, Trust.UNTRUSTED, False, (Status.PENDING, "untrusted")),
        (Review.EVERYTHING, Trust.ASSISTANT, False, (Status.PENDING, "everything")),
        (Review.EVERYTHING, Trust.USER, False, (Status.PENDING, "everything")),
    ],
)
def test_the_preference_says_what_waits(
    alice: User, review: str, trust: Trust, sensitive: bool, expected: tuple[str, str]
) -> None:
    preferences_update(user_id=alice.pk, review=str(review))
    assert status_for(user_id=alice.pk, trust=trust, sensitive=sensitive) == expected


def test_what_waits_is_in_no_search_no_prompt_and_no_recall(alice: User) -> None:
    waiting(alice, "The user keeps bees in Oslo.")
    assert found_texts(alice, "bees") == []
    assert surface(alice.pk, ["Tell me about the bees in Oslo that I keep"]).items == ()
    assert memory_recall(alice.pk, ["bees"]) == []
    assert memory_relevant(alice.pk, ["bees"]) == []
    assert waiting_count(alice.pk) == 1


def test_what_is_saved_again_while_it_waits_waits_once(alice: User) -> None:
    first = waiting(alice)
    assert waiting(alice).pk == first.pk
    other = memory_submit(user_id=alice.pk, content=first.content, tags=["home"], change=FOREIGN)
    assert other.pk != first.pk, "what it says beside its text would be lost"
    assert waiting_count(alice.pk) == 2
    review_reject(user_id=alice.pk, memory_id=first.pk)
    assert waiting(alice).pk != first.pk


def test_accepting_makes_it_memory_and_does_not_raise_the_trust(alice: User) -> None:
    note = waiting(alice)
    review_accept(user_id=alice.pk, memory_id=note.pk)
    assert (fresh(note).status, fresh(note).trust) == (Status.ACTIVE, Trust.UNTRUSTED)
    assert found_texts(alice, "Oslo") == ["The user lives in Oslo."]
    with pytest.raises(Conflict):
        review_accept(user_id=alice.pk, memory_id=note.pk)


def test_a_text_that_the_user_rewrote_is_theirs(alice: User) -> None:
    note = waiting(alice)
    review_accept(user_id=alice.pk, memory_id=note.pk, content="I live in Bergen.")
    assert (fresh(note).content, fresh(note).trust) == ("I live in Bergen.", Trust.USER)
    assert found_texts(alice, "live") == ["I live in Bergen."]


def test_accepting_a_proposed_change_changes_the_note_alone_in_what_was_proposed(
    alice: User, note: MakeNote
) -> None:
    target = note(alice, "The user lives in Lisbon.", tags=["home"])
    proposal = proposed(alice, target, "The user lives in Oslo.")
    memory_update(user_id=alice.pk, memory_id=target.pk, tags=["home", "city"])
    held = review_accept(user_id=alice.pk, memory_id=proposal.pk)
    assert (held.pk, held.content, held.tags) == (target.pk, "The user lives in Oslo.", ["home", "city"])
    assert held.trust == Trust.UNTRUSTED
    assert fresh(proposal).status == Status.DELETED
    memory_undo(user_id=alice.pk, memory_id=target.pk, version=2)
    assert (fresh(target).content, fresh(target).trust) == ("The user lives in Lisbon.", Trust.USER)


def test_what_replaced_a_note_after_another_was_proposed_held_until_that_is_accepted(
    alice: User, note: MakeNote
) -> None:
    first = note(alice, "The user lives in Lisbon.")
    oslo = memory_supersede(
        user_id=alice.pk, memory_id=first.pk, content="The user lives in Oslo.", change=FOREIGN
    )
    madrid = memory_supersede(user_id=alice.pk, memory_id=first.pk, content="The user lives in Madrid.")
    before = timezone.now()
    review_accept(user_id=alice.pk, memory_id=oslo.pk)
    end = fresh(madrid).valid_to
    assert end
    assert before < end == fresh(oslo).valid_from

    def held(moment: datetime) -> list[str]:
        return [row.content for row in memories_list(alice.pk, NoteFilter(as_of=moment))]

    assert held(before) == ["The user lives in Madrid."]
    assert held(timezone.now()) == ["The user lives in Oslo."]


def test_labels_that_are_proposed_after_others_wait_too(alice: User, note: MakeNote) -> None:
    preferences_update(user_id=alice.pk, review=str(Review.EVERYTHING))
    target = note(alice, "The user works as a nurse.", importance=2)

    def propose(**labels: object) -> Memory:
        return memory_update(user_id=alice.pk, memory_id=target.pk, change=BY_ASSISTANT, **labels)

    first, second = propose(importance=5), propose(tags=["work"])
    assert (propose(importance=5).pk, propose(tags=["work"]).pk) == (first.pk, second.pk)
    assert {first.pk, second.pk} == {row.pk for row in review_queue(alice.pk)}
    review_decide(user_id=alice.pk, memory_ids=[first.pk, second.pk], accept=True)
    assert (fresh(target).importance, fresh(target).tags) == (5, ["work"])


def test_accepting_a_replacement_supersedes(alice: User, note: MakeNote) -> None:
    target = note(alice, "The user lives in Lisbon.")
    proposal = memory_supersede(
        user_id=alice.pk,
        memory_id=target.pk,
        content="The user lives in Oslo.",
        change=FOREIGN,
    )
    held = review_accept(user_id=alice.pk, memory_id=proposal.pk)
    assert (held.pk, held.status) == (proposal.pk, Status.ACTIVE)
    assert (fresh(target).status, fresh(target).superseded_by_id) == (Status.SUPERSEDED, proposal.pk)
    assert found_texts(alice, "lives") == ["The user lives in Oslo."]
    memory_restore(user_id=alice.pk, memory_id=target.pk)
    assert found_texts(alice, "lives") == ["The user lives in Lisbon."]


def test_a_proposal_for_a_note_that_is_gone_becomes_a_note_of_its_own(
    alice: User, note: MakeNote
) -> None:
    target = note(alice, "The user lives in Lisbon.")
    proposal = proposed(alice, target, "The user lives in Oslo.")
    memories_erase(user_id=alice.pk, memory_ids=[target.pk])
    held = review_accept(user_id=alice.pk, memory_id=proposal.pk)
    assert (held.pk, held.status) == (proposal.pk, Status.ACTIVE)


@pytest.mark.parametrize("take", [memory_update, memory_supersede])
def test_a_text_that_is_accepted_is_remembered_where_its_note_was_archived_meanwhile(
    alice: User, note: MakeNote, take: Callable[..., Memory]
) -> None:
    target = note(alice, "The user lives in Lisbon.")
    proposal = take(
        user_id=alice.pk, memory_id=target.pk, content="The user lives in Oslo.", change=BY_PAGE
    )
    memory_archive(user_id=alice.pk, memory_id=target.pk)
    (shown,) = waiting_of(alice.pk, [fresh(proposal)])
    assert not shown.changes_other
    review_accept(user_id=alice.pk, memory_id=proposal.pk)
    assert found_texts(alice, "Where does the user live?") == ["The user lives in Oslo."]
    put_away = fresh(target)
    assert (put_away.status, put_away.content) == (Status.ARCHIVED, "The user lives in Lisbon.")


def test_what_is_shown_as_new_goes_into_no_note_that_took_the_place_of_an_archived_one(
    alice: User, note: MakeNote
) -> None:
    target = note(alice, "The user lives in Lisbon.")
    proposal = memory_update(
        user_id=alice.pk,
        memory_id=target.pk,
        content="The user lives in Lisbon, Alfama.",
        change=BY_PAGE,
    )
    newer = memory_supersede(user_id=alice.pk, memory_id=target.pk, content="The user lives in Oslo.")
    memory_archive(user_id=alice.pk, memory_id=target.pk)
    (shown,) = waiting_of(alice.pk, [fresh(proposal)])
    assert not shown.changes_other
    review_accept(user_id=alice.pk, memory_id=proposal.pk)
    assert (fresh(newer).content, fresh(newer).trust) == ("The user lives in Oslo.", Trust.USER)
    assert "The user lives in Oslo." in found_texts(alice, "Where does the user live?")


def test_labels_that_are_accepted_bring_back_nothing_that_was_archived(
    alice: User, note: MakeNote
) -> None:
    preferences_update(user_id=alice.pk, review="everything")
    target = note(alice, "The user lives in Lisbon.")
    proposal = memory_update(user_id=alice.pk, memory_id=target.pk, change=BY_ASSISTANT, tags=["home"])
    memory_archive(user_id=alice.pk, memory_id=target.pk)
    review_accept(user_id=alice.pk, memory_id=proposal.pk)
    assert found_texts(alice, "lives") == []
    assert (fresh(target).status, fresh(target).tags) == (Status.ARCHIVED, ["home"])


@pytest.mark.parametrize("given", [{}, {"content": "The user lives in Lisbon."}])
def test_labels_that_are_accepted_leave_the_text_that_the_note_has_by_now(
    alice: User, note: MakeNote, given: dict[str, str]
) -> None:
    preferences_update(user_id=alice.pk, review="everything")
    target = note(alice, "The user lives in Lisbon.")
    proposal = memory_update(
        user_id=alice.pk, memory_id=target.pk, change=BY_ASSISTANT, tags=["home"], **given
    )
    memory_update(user_id=alice.pk, memory_id=target.pk, content="I live in Oslo.")
    (shown,) = waiting_of(alice.pk, [fresh(proposal)])
    assert [(piece.kind, piece.text) for piece in shown.diff] == [("same", "I live in Oslo.")]
    review_accept(user_id=alice.pk, memory_id=proposal.pk)
    held = fresh(target)
    assert (held.content, held.trust, held.tags) == ("I live in Oslo.", Trust.USER, ["home"])


def test_a_text_that_the_user_writes_into_a_proposal_of_labels_is_part_of_it(
    alice: User, note: MakeNote
) -> None:
    preferences_update(user_id=alice.pk, review="everything")
    target = note(alice, "The user lives in Lisbon.")
    proposal = memory_update(user_id=alice.pk, memory_id=target.pk, change=BY_ASSISTANT, tags=["home"])
    memory_update(user_id=alice.pk, memory_id=proposal.pk, content="I live in Bergen.", importance=5)
    review_accept(user_id=alice.pk, memory_id=proposal.pk)
    held = fresh(target)
    assert (held.content, held.tags, held.importance) == ("I live in Bergen.", ["home"], 5)


@pytest.mark.parametrize("archived", [False, True])
def test_a_text_that_is_written_while_labels_are_accepted_is_remembered(
    alice: User, note: MakeNote, archived: bool
) -> None:
    preferences_update(user_id=alice.pk, review="everything")
    target = note(alice, "The user lives in Lisbon.")
    proposal = memory_update(user_id=alice.pk, memory_id=target.pk, change=BY_ASSISTANT, tags=["home"])
    if archived:
        memory_archive(user_id=alice.pk, memory_id=target.pk)
    held = review_accept(user_id=alice.pk, memory_id=proposal.pk, content="I live in Bergen.")
    assert (held.pk == target.pk) is not archived
    assert found_texts(alice, "live") == ["I live in Bergen."]
    assert fresh(held).tags == ["home"]


def test_what_is_added_to_a_note_leaves_the_labels_that_it_got_meanwhile(
    alice: User, note: MakeNote
) -> None:
    target = note(alice, "The user likes tea.", tags=["drink"])
    proposal = memory_absorb(
        user_id=alice.pk,
        memory_id=target.pk,
        content="The user likes green tea.",
        tags=["green"],
        change=BY_PAGE,
    )
    memory_update(user_id=alice.pk, memory_id=target.pk, tags=["drink", "morning"], importance=5)
    review_accept(user_id=alice.pk, memory_id=proposal.pk)
    held = fresh(target)
    assert (held.content, held.importance) == ("The user likes green tea.", 5)
    assert held.tags == ["drink", "morning", "green"]


def test_merging_into_another_note(alice: User, note: MakeNote) -> None:
    into = note(alice, "The user lives in Norway.", tags=["home"])
    pending = memory_submit(
        user_id=alice.pk, content="The user lives in Oslo.", tags=["Home", "city"], change=FOREIGN
    )
    held = review_merge(
        user_id=alice.pk, memory_id=pending.pk, into_id=into.pk, content="Lives in Oslo, Norway."
    )
    assert (held.pk, held.content, held.trust) == (into.pk, "Lives in Oslo, Norway.", Trust.UNTRUSTED)
    assert held.tags == ["home", "city"]
    assert fresh(pending).status == Status.DELETED
    with pytest.raises(Conflict):
        review_merge(user_id=alice.pk, memory_id=into.pk, into_id=into.pk)


def test_what_is_merged_into_a_note_that_has_ended_is_remembered(alice: User, note: MakeNote) -> None:
    ended = timezone.now() - timedelta(days=1)
    into = note(alice, "The user lives in Norway.", valid_from=ended - timedelta(days=9), valid_to=ended)
    review_merge(user_id=alice.pk, memory_id=waiting(alice).pk, into_id=into.pk)
    assert fresh(into).valid_to is None


def test_what_is_rejected_is_gone_and_can_wait_again(alice: User) -> None:
    note = waiting(alice)
    review_reject(user_id=alice.pk, memory_id=note.pk)
    assert waiting_count(alice.pk) == 0
    memory_restore(user_id=alice.pk, memory_id=note.pk)
    assert fresh(note).status == Status.PENDING
    assert fresh(note).review_reason == "untrusted"


def test_several_at_once_each_for_itself(alice: User, bob: User, note: MakeNote) -> None:
    first, second = waiting(alice, "The user has a cat."), waiting(alice, "The user has a dog.")
    active, foreign = note(alice), waiting(bob, "Bob's.")
    done = review_decide(
        user_id=alice.pk, memory_ids=[first.pk, second.pk, active.pk, foreign.pk], accept=True
    )
    assert done.count == 2
    assert {key: error.code for key, error in done.failed.items()} == {
        active.pk: "not_waiting",
        foreign.pk: "not_found",
    }
    assert fresh(foreign).status == Status.PENDING
    third = waiting(alice, "The user has a bird.")
    assert review_decide(user_id=alice.pk, memory_ids=[third.pk], accept=False).count == 1
    with pytest.raises(InvalidInput):
        review_decide(user_id=alice.pk, memory_ids=[], accept=False)


def test_the_queue_shows_what_stands_against_each(alice: User, note: MakeNote) -> None:
    like = note(alice, "The user lives with two cats in Oslo.")
    target = note(alice, "The user plays chess on Sundays.")
    alone = waiting(alice, "Zebras graze.")
    similar = waiting(alice, "The user lives in Oslo with two cats.")
    proposal = proposed(alice, target, "The user plays chess on Mondays.")
    shown = {each.note.pk: each for each in waiting_of(alice.pk, list(review_queue(alice.pk)))}
    assert list(shown) == [proposal.pk, similar.pk, alone.pk]
    assert (shown[proposal.pk].action, shown[proposal.pk].other) == (Proposal.UPDATE, target)
    assert [(piece.kind, piece.text) for piece in shown[proposal.pk].diff if piece.kind != "same"] == [
        ("removed", "Sundays"),
        ("added", "Mondays"),
    ]
    assert shown[similar.pk].other == like
    assert shown[similar.pk].similarity is not None
    assert (shown[alone.pk].other, shown[alone.pk].diff) == (None, ())


@pytest.mark.parametrize(
    ("known", "proposed_text"),
    [
        ("The user's bicycle is red.", "The user's bicycle lock code is 4711."),
        ("The lock code of the user's bicycle is 4711.", "The lock code of the user's bicycle is 5822."),
        ("The user lives in Lisbon, Portugal.", "The user lives in Oslo, Norway."),
        ("The user likes coffee.", "The user does not like coffee."),
    ],
)
def test_a_note_that_says_something_else_is_not_offered_to_be_merged(
    known: str, proposed_text: str, alice: User, note: MakeNote
) -> None:
    note(alice, known)
    other = waiting(alice, proposed_text)
    (shown,) = waiting_of(alice.pk, [other])
    assert (shown.other, shown.similarity) == (None, None)


@pytest.mark.parametrize(
    ("old", "new"),
    [("", "a"), ("a b", ""), ("x y z", "x q z"), ("l\n" * 5000, "l\n" * 4999 + "m\n"), ("a", "a")],
)
def test_a_diff_holds_both_texts(old: str, new: str) -> None:
    pieces = text_diff(old, new)
    assert "".join(piece.text for piece in pieces if piece.kind != "removed") == new
    assert "".join(piece.text for piece in pieces if piece.kind != "added") == old


def test_one_word_in_a_long_text_is_shown_as_one_word() -> None:
    text = " ".join(f"word{number}" for number in range(4000))
    changed = [
        piece for piece in text_diff(text, text.replace("word2000 ", "other ")) if piece.kind != "same"
    ]
    assert [(piece.kind, piece.text) for piece in changed] == [
        ("removed", "word2000"),
        ("added", "other"),
    ]


def test_very_long_texts_that_differ_all_over_are_replaced_as_a_whole() -> None:
    """Looking for what they share would take minutes."""
    old, new = "a\nb\n" * 20_000, "b\nc\n" * 20_000
    assert [piece.kind for piece in text_diff(old, new) if piece.text.strip()] == ["removed", "added"]


def contradiction(user: User, note: MakeNote) -> tuple[Memory, Memory, MemoryEdge]:
    one, two = note(user, "The user eats no meat."), note(user, "The user loves steak.")
    edge = edge_create(user_id=user.pk, source_id=two.pk, target_id=one.pk, relation="contradicts")
    return one, two, edge


def test_of_two_notes_that_contradict_the_kept_one_supersedes(alice: User, note: MakeNote) -> None:
    one, two, edge = contradiction(alice, note)
    assert [row.pk for row in open_contradictions(alice.pk)] == [edge.pk]
    contradiction_resolve(user_id=alice.pk, edge_id=edge.pk, keep_id=one.pk)
    assert (fresh(two).status, fresh(two).superseded_by_id) == (Status.SUPERSEDED, one.pk)
    assert not open_contradictions(alice.pk).exists()
    memory_restore(user_id=alice.pk, memory_id=two.pk)
    assert (fresh(one).status, fresh(two).status) == (Status.ACTIVE, Status.ACTIVE)
    assert open_contradictions(alice.pk).exists()


def test_both_may_be_true(alice: User, bob: User, note: MakeNote) -> None:
    one, two, edge = contradiction(alice, note)
    for user, keep in ((bob, one.pk), (bob, None)):
        with pytest.raises(NotFound):
            contradiction_resolve(user_id=user.pk, edge_id=edge.pk, keep_id=keep)
    contradiction_resolve(user_id=alice.pk, edge_id=edge.pk, keep_id=None)
    assert not open_contradictions(alice.pk).exists()
    assert MemoryEdge.objects.for_user(alice).get().relation == "related"
    assert (fresh(one).status, fresh(two).status) == (Status.ACTIVE, Status.ACTIVE)
