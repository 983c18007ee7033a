"""Lists of notes: filters, order, figures."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.core.errors import IzzyError
from apps.core.models import UnscopedQuery
from apps.memory.models import Memory, Origin, Trust
from apps.memory.notes.changes import access_record, memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import edge_create
from apps.memory.notes.revisions import Change
from apps.memory.notes.selectors import NoteFilter, memories_list, memory_stats
from tests.memory.conftest import MakeNote


def listed(user: User, **wanted: str) -> list[str]:
    return [note.content for note in memories_list(user.pk, NoteFilter(**wanted))]


@pytest.fixture
def notes(alice: User, bob: User, note: MakeNote) -> dict[str, Memory]:
    """Three notes of alice, oldest first, and one of bob."""
    note(bob, "tea, says bob", tags=["Food"], category="home", kind="fact")
    made = {
        "tea": note(alice, "Drinks green tea", tags=["Food", "drinks"], kind="preference", importance=2),
        "job": note(alice, "Works at the harbour", category="work", tier="short_term", importance=5),
        "cat": note(
            alice,
            "The cat likes TEA boxes",
            tags=["pets"],
            change=Change(actor=Origin.ASSISTANT, trust=Trust.ASSISTANT),
        ),
    }
    for days, row in enumerate(reversed(made.values())):
        Memory.objects.for_user(alice).filter(pk=row.pk).update(
            created_at=timezone.now() - timedelta(days=days)
        )
    return made


def test_without_limits_all_own_notes_come_newest_first(alice: User, notes: dict[str, Memory]) -> None:
    assert listed(alice) == ["The cat likes TEA boxes", "Works at the harbour", "Drinks green tea"]


@pytest.mark.parametrize(
    ("wanted", "contents"),
    [
        ({"q": "tea"}, ["The cat likes TEA boxes", "Drinks green tea"]),
        ({"q": "green TEA"}, ["Drinks green tea"]),
        ({"q": "pets"}, ["The cat likes TEA boxes"]),
        ({"q": "harbour tea"}, []),
        ({"q": "100%"}, []),
        ({"tier": "short_term"}, ["Works at the harbour"]),
        ({"kind": "preference"}, ["Drinks green tea"]),
        ({"tag": "food"}, ["Drinks green tea"]),
        ({"tag": "DRINKS"}, ["Drinks green tea"]),
        ({"tag": "foo"}, []),
        ({"category": "work"}, ["Works at the harbour"]),
        ({"source": "assistant"}, ["The cat likes TEA boxes"]),
        ({"status": "archived"}, []),
        ({"q": "tea", "kind": "preference", "tag": "drinks"}, ["Drinks green tea"]),
    ],
)
def test_filters_limit_the_list(
    alice: User, notes: dict[str, Memory], wanted: dict[str, str], contents: list[str]
) -> None:
    assert listed(alice, **wanted) == contents


@pytest.mark.parametrize(
    ("ordering", "first"),
    [
        ("created_at", "tea"),
        ("-created_at", "cat"),
        ("importance", "tea"),
        ("-importance", "job"),
        ("priority", "job"),
        ("-access_count", "tea"),
        ("-last_accessed", "tea"),
        ("last_accessed", "tea"),
        ("-updated_at", "job"),
    ],
)
def test_lists_are_ordered(alice: User, notes: dict[str, Memory], ordering: str, first: str) -> None:
    access_record(user_id=alice.pk, memory_ids=[notes["tea"].pk])
    memory_update(user_id=alice.pk, memory_id=notes["job"].pk, category="harbour")
    assert listed(alice, ordering=ordering)[0] == notes[first].content


@pytest.mark.parametrize(
    "wanted",
    [
        {"tier": "medium"},
        {"kind": "rumour"},
        {"status": "gone"},
        {"source": "nowhere"},
        {"ordering": "content"},
        {"ordering": "--created_at"},
        {"ordering": ""},
        {"q": "x" * 1001},
        {"q": "a\x00"},
        {"tag": "\x00"},
        {"tag": "x" * 51},
        {"category": "x" * 65},
    ],
)
def test_a_filter_no_note_can_meet_is_refused(alice: User, wanted: dict[str, str]) -> None:
    with pytest.raises(IzzyError) as refused:
        listed(alice, **wanted)
    assert 400 <= refused.value.status < 500


@pytest.mark.parametrize("written", ["Österreich", "österreich", "ÖSTERREICH"])
def test_letters_beyond_ascii_are_found_in_either_case(
    alice: User, note: MakeNote, written: str
) -> None:
    note(alice, "Urlaub in Österreich")
    note(alice, "Urlaub am Meer", tags=["Österreich"])
    assert len(listed(alice, q=written)) == 2
    assert listed(alice, tag=written) == ["Urlaub am Meer"]


@pytest.mark.parametrize("query", ["50%", "a_b", "c\\d", "(x", "[é"])
def test_signs_of_the_databases_patterns_stand_for_themselves(
    alice: User, note: MakeNote, query: str
) -> None:
    note(alice, f"has {query} in the text")
    note(alice, "has it in a tag", tags=[f"tag {query}"])
    note(alice, "has 50 things, axb, cd, x, é")
    assert sorted(listed(alice, q=query)) == [f"has {query} in the text", "has it in a tag"]


def test_a_category_is_found_however_its_letters_are_put_together(alice: User, note: MakeNote) -> None:
    note(alice, "Opens at eight.", category="Cafe\u0301")
    for written in ("Café", "Cafe\u0301"):
        assert listed(alice, category=written) == ["Opens at eight."]


def test_archived_and_deleted_notes_have_lists_of_their_own(
    alice: User, notes: dict[str, Memory]
) -> None:
    memory_archive(user_id=alice.pk, memory_id=notes["tea"].pk)
    memory_delete(user_id=alice.pk, memory_id=notes["job"].pk)
    assert listed(alice, status="archived") == ["Drinks green tea"]
    assert listed(alice, status="deleted") == ["Works at the harbour"]
    assert listed(alice) == ["The cat likes TEA boxes", "Drinks green tea"]
    assert listed(alice, status="active") == ["The cat likes TEA boxes"]


def test_a_query_without_a_user_is_refused(db: None) -> None:
    with pytest.raises(UnscopedQuery):
        Memory.objects.all()
    with pytest.raises(UnscopedQuery):
        Memory.objects.filter(content="tea")


def test_figures_count_what_is_there_in_one_pass(
    alice: User, notes: dict[str, Memory], django_assert_num_queries: Any
) -> None:
    edge_create(user_id=alice.pk, source_id=notes["tea"].pk, target_id=notes["cat"].pk)
    access_record(user_id=alice.pk, memory_ids=[notes["tea"].pk])
    memory_archive(user_id=alice.pk, memory_id=notes["cat"].pk)
    memory_delete(user_id=alice.pk, memory_id=notes["job"].pk)
    with django_assert_num_queries(4):  # notes, deleted ones, links, cycle
        figures = memory_stats(alice.pk)
    assert figures == {
        "total": 2,
        "faded": 0,
        "never_used": 1,
        "deleted": 1,
        "links": 1,
        "cycle": 0,
        "by_status": {"active": 1, "archived": 1},
        "by_tier": {"long_term": 2},
        "by_kind": {"general": 1, "preference": 1},
        "by_source": {"assistant": 1, "user": 1},
    }


def test_figures_of_an_empty_memory_are_noughts(alice: User) -> None:
    figures = memory_stats(alice.pk)
    assert figures["total"] == figures["faded"] == figures["links"] == 0
    assert figures["by_kind"] == {}
