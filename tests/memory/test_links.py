"""Links between notes, and what lies near a note."""

from itertools import pairwise

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.core.errors import InvalidInput, IzzyError, NotFound
from apps.core.ids import uuid7
from apps.memory.models import Memory, MemoryEdge
from apps.memory.notes.changes import cycle_advance, memory_delete
from apps.memory.notes.joining import edge_create, edge_delete
from apps.memory.notes.selectors import links_of, related_notes
from tests.memory.conftest import MakeNote


@pytest.fixture
def chain(alice: User, note: MakeNote) -> list[Memory]:
    """Five notes, each linked to the next."""
    notes = [note(alice, f"Note {letter}.") for letter in "ABCDE"]
    for source, target in pairwise(notes):
        edge_create(user_id=alice.pk, source_id=source.pk, target_id=target.pk)
    return notes


def near(user: User, note: Memory, depth: int) -> dict[str, int]:
    return {row.note.content: row.depth for row in related_notes(user.pk, note.pk, depth=depth)}


def test_an_edge_starts_with_the_documented_values(alice: User, note: MakeNote) -> None:
    edge = edge_create(user_id=alice.pk, source_id=note(alice, "A").pk, target_id=note(alice, "B").pk)
    assert (edge.relation, edge.weight, edge.user_id) == ("related", 1.0, alice.pk)


def test_linking_again_sets_the_weight(alice: User, note: MakeNote) -> None:
    a, b = note(alice, "A"), note(alice, "B")
    first = edge_create(user_id=alice.pk, source_id=a.pk, target_id=b.pk, relation="works with")
    again = edge_create(
        user_id=alice.pk, source_id=a.pk, target_id=b.pk, relation="works with", weight=0.2
    )
    assert (again.pk, again.weight) == (first.pk, 0.2)
    edge_create(user_id=alice.pk, source_id=a.pk, target_id=b.pk, relation="contradicts")
    assert links_of(alice.pk, a.pk).count() == 2


@pytest.mark.parametrize("relation", ["", "x" * 65, "a\x00b", None, 3])
def test_a_relation_is_a_short_text(alice: User, note: MakeNote, relation: object) -> None:
    with pytest.raises(IzzyError) as refused:
        edge_create(
            user_id=alice.pk,
            source_id=note(alice, "A").pk,
            target_id=note(alice, "B").pk,
            relation=relation,  # type: ignore[arg-type]
        )
    assert refused.value.extra["field"] == "relation"


@pytest.mark.parametrize("weight", [-0.1, 1.5, float("nan"), "1", None, True])
def test_a_weight_lies_between_0_and_1(alice: User, note: MakeNote, weight: object) -> None:
    with pytest.raises(InvalidInput):
        edge_create(
            user_id=alice.pk,
            source_id=note(alice, "A").pk,
            target_id=note(alice, "B").pk,
            weight=weight,  # type: ignore[arg-type]
        )


def test_a_note_is_not_linked_to_itself(alice: User, note: MakeNote) -> None:
    made = note(alice)
    with pytest.raises(InvalidInput):
        edge_create(user_id=alice.pk, source_id=made.pk, target_id=made.pk)


def test_only_notes_of_one_user_are_linked(alice: User, bob: User, note: MakeNote) -> None:
    mine, his = note(alice), note(bob)
    for user, source, target in ((alice, mine, his), (alice, his, mine), (bob, mine, his)):
        with pytest.raises(NotFound):
            edge_create(user_id=user.pk, source_id=source.pk, target_id=target.pk)
    assert MemoryEdge.objects.unscoped().count() == 0


def test_deleted_and_unknown_notes_are_not_linked(alice: User, note: MakeNote) -> None:
    made, gone = note(alice, "A"), note(alice, "B")
    memory_delete(user_id=alice.pk, memory_id=gone.pk)
    for target in (gone.pk, uuid7()):
        with pytest.raises(NotFound):
            edge_create(user_id=alice.pk, source_id=made.pk, target_id=target)


def test_a_link_can_be_removed_from_either_end(alice: User, bob: User, note: MakeNote) -> None:
    a, b, c = (note(alice, text) for text in "ABC")
    edge = edge_create(user_id=alice.pk, source_id=a.pk, target_id=b.pk)
    for user, start in ((bob, a), (alice, c)):
        with pytest.raises(NotFound):
            edge_delete(user_id=user.pk, source_id=start.pk, edge_id=edge.pk)
    edge_delete(user_id=alice.pk, source_id=b.pk, edge_id=edge.pk)
    assert not links_of(alice.pk, a.pk).exists()


def test_it_finds_notes_within_a_number_of_hops(alice: User, chain: list[Memory]) -> None:
    assert near(alice, chain[0], 1) == {"Note B.": 1}
    assert near(alice, chain[0], 2) == {"Note B.": 1, "Note C.": 2}
    assert near(alice, chain[0], 4) == {"Note B.": 1, "Note C.": 2, "Note D.": 3, "Note E.": 4}


def test_links_are_followed_in_both_directions(alice: User, chain: list[Memory]) -> None:
    assert near(alice, chain[2], 1) == {"Note B.": 1, "Note D.": 1}


def test_a_cycle_ends_where_it_began(alice: User, chain: list[Memory]) -> None:
    edge_create(user_id=alice.pk, source_id=chain[4].pk, target_id=chain[0].pk)
    edge_create(user_id=alice.pk, source_id=chain[1].pk, target_id=chain[0].pk, relation="elaborates")
    assert near(alice, chain[0], 5) == {"Note B.": 1, "Note E.": 1, "Note C.": 2, "Note D.": 2}


def test_each_note_tells_how_it_was_reached(alice: User, note: MakeNote) -> None:
    a, b, c = (note(alice, text) for text in "ABC")
    edge_create(user_id=alice.pk, source_id=a.pk, target_id=b.pk, relation="supersedes", weight=0.5)
    edge_create(user_id=alice.pk, source_id=c.pk, target_id=b.pk, relation="contradicts", weight=0.25)
    first, second = related_notes(alice.pk, a.pk, depth=2)
    assert (first.note.pk, first.relation, first.weight, first.via_id) == (b.pk, "supersedes", 0.5, a.pk)
    assert (second.note.pk, second.relation, second.weight, second.via_id) == (
        c.pk,
        "contradicts",
        0.25,
        b.pk,
    )


def test_the_strongest_link_names_the_way(alice: User, note: MakeNote) -> None:
    a, b = note(alice, "A"), note(alice, "B")
    edge_create(user_id=alice.pk, source_id=a.pk, target_id=b.pk, relation="related", weight=0.1)
    edge_create(user_id=alice.pk, source_id=a.pk, target_id=b.pk, relation="elaborates", weight=0.9)
    (only,) = related_notes(alice.pk, a.pk)
    assert only.relation == "elaborates"


def test_a_deleted_note_is_no_bridge(alice: User, chain: list[Memory]) -> None:
    memory_delete(user_id=alice.pk, memory_id=chain[1].pk)
    assert near(alice, chain[0], 5) == {}


def test_a_level_is_one_query_however_many_notes_it_has(alice: User, note: MakeNote) -> None:
    counts = []
    for number in (2, 30):
        middle, *around = [note(alice, f"Note {place} of {number}") for place in range(number)]
        for each in around:
            edge_create(user_id=alice.pk, source_id=middle.pk, target_id=each.pk)
        with CaptureQueriesContext(connection) as queries:
            assert len(related_notes(alice.pk, middle.pk, depth=1)) == number - 1
        counts.append(len(queries))
    assert counts == [5, 5]


def test_no_level_is_looked_at_once_there_are_enough(alice: User, chain: list[Memory]) -> None:
    with CaptureQueriesContext(connection) as queries:
        found = related_notes(alice.pk, chain[2].pk, depth=5, limit=1)
    assert [row.depth for row in found] == [1]
    assert len(queries) == 5


def test_what_lies_near_knows_its_present_priority(alice: User, chain: list[Memory]) -> None:
    for _ in range(20):
        cycle_advance(user_id=alice.pk)
    assert related_notes(alice.pk, chain[0].pk)[0].note.present == pytest.approx(0.8)


def test_a_dense_graph_is_walked_in_reasonable_time(alice: User, note: MakeNote) -> None:
    notes = [note(alice, f"Note {number}") for number in range(30)]
    edges = [
        MemoryEdge(user_id=alice.pk, source=a, target=b)
        for index, a in enumerate(notes)
        for b in notes[index + 1 :]
    ]
    MemoryEdge.objects.bulk_create(edges)
    assert len(related_notes(alice.pk, notes[0].pk, depth=5)) == 29
