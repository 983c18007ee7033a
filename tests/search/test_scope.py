"""Limits of a search: sources, conversations, ids, and the time that is looked at."""

from datetime import timedelta

from django.utils import timezone

from apps.accounts.models import User
from apps.search.documents import Scope, Source
from apps.search.selectors import context, search, similar

from .conftest import DAY, found, save, say


def test_only_the_named_sources_are_searched(alice: User) -> None:
    save(alice, "The car is red")
    save(alice, "Car manual, page 1", source=Source.FILE)
    say(alice, ("user", "I washed the car"))
    notes = Scope(sources=frozenset({Source.MEMORY}))
    talk = Scope(sources=frozenset({Source.CONVERSATION, Source.FILE}))
    assert found(alice, "car", scope=notes) == ["The car is red"]
    assert set(found(alice, "car", scope=talk)) == {"Car manual, page 1", "I washed the car"}


def test_one_conversation_can_be_searched(alice: User) -> None:
    first = say(alice, ("user", "I washed the car"))
    say(alice, ("user", "I sold the car"))
    assert found(alice, "car", scope=Scope(conversation_id=first)) == ["I washed the car"]


def test_notes_can_be_chosen_and_left_out(alice: User) -> None:
    red, blue = save(alice, "The car is red", "The car is blue")
    assert found(alice, "car", scope=Scope(only_ids=[blue])) == ["The car is blue"]
    assert found(alice, "car", scope=Scope(exclude_ids={blue})) == ["The car is red"]
    assert found(alice, "car", scope=Scope(only_ids=[red, blue], exclude_ids=[red])) == [
        "The car is blue"
    ]
    assert [name for name, _ in similar(alice.pk, "The car is red", scope=Scope(exclude_ids=[red]))] == [
        blue
    ]


def test_what_is_no_longer_true_is_found_only_by_a_look_back(alice: User) -> None:
    now = timezone.now()
    save(
        alice, "Lives in Bonn", valid_from=now - timedelta(days=900), valid_to=now - timedelta(days=300)
    )
    save(alice, "Lives in Rome", valid_from=now - timedelta(days=300))
    assert found(alice, "Where does she live?") == ["Lives in Rome"]
    before = Scope(as_of=now - timedelta(days=600))
    assert found(alice, "Where does she live?", scope=before) == ["Lives in Bonn"]


def test_what_is_not_true_yet_is_not_found(alice: User) -> None:
    save(alice, "Lives in Oslo", valid_from=timezone.now() + timedelta(days=10))
    assert found(alice, "live") == []
    later = Scope(as_of=timezone.now() + timedelta(days=20))
    assert found(alice, "live", scope=later) == ["Lives in Oslo"]


def test_a_look_back_does_not_find_what_was_said_later(alice: User) -> None:
    say(alice, ("user", "I washed the car"))
    assert found(alice, "car", scope=Scope(as_of=DAY - timedelta(days=1))) == []
    assert found(alice, "car", scope=Scope(as_of=DAY + timedelta(days=1))) == ["I washed the car"]


def test_the_context_keeps_to_the_scope(alice: User) -> None:
    save(alice, "The car is red")
    say(alice, ("user", "I washed the car"))
    packed = context(alice.pk, "car", scope=Scope(sources=frozenset({Source.MEMORY})))
    assert "red" in packed.text
    assert "washed" not in packed.text


def test_a_hit_carries_what_its_document_was_saved_with(alice: User) -> None:
    conversation = say(alice, ("Ann", "I washed the car"), name="m")
    hit = search(alice.pk, "car")[0]
    assert (hit.external_id, hit.speaker, hit.conversation_id, hit.happened_at) == (
        "m0",
        "Ann",
        conversation,
        DAY,
    )


def test_no_more_hits_than_asked_for(alice: User) -> None:
    save(alice, *(f"car number {number}" for number in range(30)))
    assert len(search(alice.pk, "car", top_k=7)) == 7
    assert len(search(alice.pk, "car", top_k=1000)) == 30
