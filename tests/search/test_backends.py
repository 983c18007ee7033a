"""What is written through the backend is one user's, whatever ids are named."""

import pytest

from apps.accounts.models import User
from apps.search.backends import Head, Stem, backend
from apps.search.models import Passage, Tombstone

from .conftest import save

pytestmark = pytest.mark.django_db


def head_of(user: User) -> Head:
    head = backend.head(user.pk)
    assert head is not None
    return head


def ids_of(user: User) -> list[int]:
    return list(Passage.objects.filter(user=user).order_by("id").values_list("id", flat=True))


def test_nobody_fetches_or_deletes_anothers_passages(alice: User, bob: User) -> None:
    save(alice, "The car is red"), save(bob, "The car is blue")
    (mine,), (his,) = ids_of(alice), ids_of(bob)
    assert list(backend.rows_fetch(alice.pk, [mine, his])) == [mine]
    backend.rows_delete(alice.pk, [mine, his])
    assert (ids_of(alice), ids_of(bob)) == ([], [his])
    assert len(backend.postings(head_of(alice).owner, Stem("car"))) == 0
    assert backend.postings(head_of(bob).owner, Stem("car")).tolist() == [his]
    assert [row.passage_id for row in Tombstone.objects.all()] == [mine]


def test_each_write_raises_the_change_that_its_rows_carry(alice: User) -> None:
    save(alice, "The car is red")
    before = head_of(alice)
    save(alice, "The bicycle is green")
    after = head_of(alice)
    assert after.change > before.change
    assert backend.read_changed(after, before.change).ids.tolist() == ids_of(alice)[1:]
    backend.rows_delete(alice.pk, ids_of(alice)[:1])
    assert len(backend.read_removed(after, after.change)) == 1


def test_a_row_comes_back_as_it_was_given(alice: User) -> None:
    (name,) = save(alice, "The car is red")
    (row,) = backend.rows_fetch(alice.pk, ids_of(alice)).values()
    assert (row.source_id, row.text, row.conversation_id, row.past) == (
        name,
        "The car is red",
        None,
        False,
    )
    assert row.happened_at.tzinfo is not None


def test_the_newest_passages_with_one_form_of_each_word_come_first(alice: User) -> None:
    (
        save(alice, "The red car"),
        save(alice, "A reddish car"),
        save(alice, "A red house"),
        save(alice, "My car: red"),
    )
    one, two, _, four = ids_of(alice)
    owner, words = head_of(alice).owner, [[Stem("car")], [Stem("red", prefix=True), Stem("nowhere")]]
    assert backend.postings_matching(owner, words, limit=10).tolist() == [four, two, one]
    assert backend.postings_matching(owner, words, limit=1).tolist() == [four]
