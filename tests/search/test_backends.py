"""Rows written through the backend are one user's, whatever ids are named; both storages give the same."""

from uuid import uuid4

import numpy as np
import pytest

from apps.accounts.models import User
from apps.search.backends import Batch, Head, Stem, backend
from apps.search.documents import Facet
from apps.search.features import DTYPE
from apps.search.filling import vectors_fill
from apps.search.models import Passage, Tombstone
from tests.peers.ollama_server import OllamaPeer

from .conftest import found, save

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
    assert [ids.tolist() for ids in backend.postings(head_of(alice).owner, [Stem("car")])] == [[]]
    assert [ids.tolist() for ids in backend.postings(head_of(bob).owner, [Stem("car")])] == [[his]]
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


def check(batch: Batch, passages: list[Passage]) -> None:
    """That the batch holds these passages, row by row."""
    assert batch.ids.tolist() == [passage.pk for passage in passages]
    assert batch.embedded.tolist() == [passage.vector is not None for passage in passages]
    facts = np.frombuffer(b"".join(bytes(passage.features) for passage in passages), dtype=DTYPE)
    assert (batch.features == facts).all()
    sides = dict(zip(batch.side_places.tolist(), batch.sides, strict=True))
    for place, passage in enumerate(passages):
        assert batch.vectors[place].tobytes() == bytes(passage.vector or bytes(512))
        side = bytes(passage.side_vector or b"")
        assert (sides[place].tobytes() if place in sides else b"") == side


def test_a_batch_has_each_passage_with_its_own_vectors(
    alice: User, bob: User, ollama: OllamaPeer
) -> None:
    save(alice, "The car is red", "The house is blue", "The boat is new")
    vectors_fill()
    save(bob, "The car is green")
    save(alice, "The moon is full", "The tea is hot")
    save(alice, "at the table", "by the sea", facet=Facet.OCCASIONS, source_id=uuid4())
    _, second, *_ = Passage.objects.filter(user=alice, facet=Facet.TEXT).order_by("pk")
    Passage.objects.filter(pk=second.pk).update(vector=None)
    head, mine = head_of(alice), Passage.objects.filter(user=alice).order_by("pk")
    texts = list(mine.filter(facet=Facet.TEXT))
    assert [passage.side_vector is not None for passage in texts] == [True] * 3 + [False] * 2
    check(backend.read_all(head), texts)
    changed = backend.read_changed(head, texts[2].change)
    check(changed, texts[3:])
    assert changed.terms == [passage.terms for passage in texts[3:]]
    (occasions,) = backend.read_occasions(head)
    check(occasions, list(mine.filter(facet=Facet.OCCASIONS)))
    check(backend.read_changed(head, head.change), [])
    assert list(backend.read_occasions(head, head.change)) == []


def test_several_stems_asked_for_together_have_each_their_own_passages(alice: User, bob: User) -> None:
    save(bob, "The car is red")
    save(alice, "The car is red", "The car is blue", "汽车")
    first, second, third = ids_of(alice)
    stems = list(map(Stem, ["car", "nowhere", "blue", "汽车", "x" * 64]))
    lists = backend.postings(head_of(alice).owner, stems)
    assert [ids.tolist() for ids in lists] == [[first, second], [], [second], [third], []]
    assert backend.postings(head_of(alice).owner, []) == []


@pytest.mark.django_db(transaction=True)
def test_merging_leaves_what_is_there(alice: User) -> None:
    save(alice, "The car is red", "The bicycle is green")
    backend.rows_delete(alice.pk, ids_of(alice)[:1])
    backend.segments_merge()
    assert found(alice, "bicycle") == ["The bicycle is green"]
    owner = head_of(alice).owner
    assert list(map(len, backend.postings(owner, [Stem("car"), Stem("bicycl")]))) == [0, 1]
