"""Deep memory without a language model: several angles, one answer."""

import threading
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.agent.models import ModelCall
from apps.core.db.pool import in_db
from apps.core.errors import IzzyError, Unavailable
from apps.memory.models import Memory, MemoryEdge, Origin, Trust
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.creation import memory_create
from apps.memory.notes.joining import edge_create
from apps.memory.notes.revisions import Change
from apps.memory.recall.keywords import memory_recall
from apps.memory.similarity import NOTES
from apps.memory.tools import deep
from apps.memory.tools.search import UNTRUSTED_HINT
from apps.search.selectors import search
from tests.memory.conftest import MakeNote
from tests.tools import Tools
from tests.waiting import PATIENCE

pytestmark = pytest.mark.django_db(transaction=True)

EAT = "what does the user like to eat?"
FOOD = {
    "The hotter the Thai curry the better, says the user.": ["cuisine"],
    "Shellfish sends the user to hospital.": ["allergy"],
    "On Sundays it is always lasagne.": ["dinner"],
}
OTHER = {
    "The user works at Siemens.": ["work"],
    "The user plays chess with Tom.": ["hobby"],
    "The lift is noisy.": [],
}


@pytest.fixture
def events() -> list[dict[str, Any]]:
    return []


@pytest.fixture
def kitchen(alice: User, note: MakeNote) -> dict[str, Memory]:
    """Notes about food that do not say so, among others."""
    return {text: note(alice, text, tags=tags) for text, tags in (FOOD | OTHER).items()}


async def ask(user: User, query: str, events: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    tools = Tools(user_id=user.pk)
    result: dict[str, Any] = await tools.call("deep_memory", query=query)
    if events is not None:
        events += tools.progress
    return result


def certain(user: User, query: str) -> list[str]:
    """Returns what one search is sure of."""
    return [hit.text for hit in search(user.pk, query, top_k=20, scope=NOTES, threshold=0.45)]


def texts(result: dict[str, Any]) -> list[str]:
    return [memory["text"] for memory in result["memories"]]


async def test_it_finds_what_a_search_for_the_word_misses(
    alice: User, kitchen: dict[str, Memory]
) -> None:
    assert await in_db(memory_recall, alice.pk, ["eat"]) == []
    assert await in_db(certain, alice, "eat") == []
    result = await ask(alice, EAT)
    assert set(texts(result)[:3]) == FOOD.keys()
    assert result["count"] == len(result["memories"])
    assert "The user works at Siemens." not in texts(result)


async def test_the_three_events_come_in_order(
    alice: User, kitchen: dict[str, Memory], events: list[dict[str, Any]]
) -> None:
    result = await ask(alice, EAT, events)
    assert [event["status"] for event in events] == ["expanding", "searching", "found"]
    assert events[0] == {"status": "expanding", "query": EAT}
    assert events[1] == {"status": "searching", "searches": result["searches"]}
    assert 3 <= len(result["searches"]) <= 5
    assert events[2]["count"] == result["count"]
    assert [shown["text"] for shown in events[2]["memories"]] == texts(result)


async def test_no_model_is_asked_in_offline_mode(alice: User, kitchen: dict[str, Memory]) -> None:
    result = await ask(alice, EAT)
    assert "summary" not in result
    assert not await in_db(ModelCall.objects.for_user(alice).exists)


async def test_nothing_known_is_nothing_found(alice: User, events: list[dict[str, Any]]) -> None:
    result = await ask(alice, EAT, events)
    assert (result["count"], result["memories"]) == (0, [])
    assert events[2] == {"status": "found", "count": 0, "memories": []}


async def test_each_note_once_and_at_most_ten(alice: User, note: MakeNote) -> None:
    for number, tag in enumerate(["dinner", "allergy", "recipe"] * 5):
        await in_db(note, alice, f"Idea {number}: pasta.", tags=[tag, "food"])
    result = await ask(alice, EAT)
    assert result["count"] == 10
    assert len({memory["note_id"] for memory in result["memories"]}) == 10


async def test_priority_and_relevance_decide_the_order(alice: User, note: MakeNote) -> None:
    for priority in (0.3, 0.9, 0.6):
        await in_db(note, alice, f"Likes restaurants, {priority}.", tags=["food"], priority=priority)
    result = await ask(alice, EAT)
    assert [memory["priority"] for memory in result["memories"]] == [0.9, 0.6, 0.3]


async def test_what_faded_is_found_and_marked(alice: User, note: MakeNote) -> None:
    for number in range(8):
        await in_db(note, alice, f"Dinner with guest {number}.")
    await in_db(
        note, alice, "The user cannot eat shellfish for dinner.", tags=["dinner", "food"], priority=0.0
    )
    memories = (await ask(alice, EAT))["memories"]
    assert {one["text"]: one.get("faded") for one in memories}[
        "The user cannot eat shellfish for dinner."
    ]
    assert sum("faded" in one for one in memories) == 1


async def test_what_waits_or_is_gone_is_left_out(alice: User, bob: User, note: MakeNote) -> None:
    await in_db(note, bob, "bob's dinner", tags=["dinner"])
    await in_db(note, alice, "pending dinner", tags=["dinner"], status="pending")
    await in_db(
        note, alice, "dinner of yore", tags=["dinner"], valid_to=timezone.now() - timedelta(days=1)
    )
    gone = await in_db(note, alice, "deleted dinner", tags=["dinner"])
    away = await in_db(note, alice, "archived dinner", tags=["dinner"])
    await in_db(memory_delete, user_id=alice.pk, memory_id=gone.pk)
    await in_db(memory_archive, user_id=alice.pk, memory_id=away.pk)
    kept = await in_db(note, alice, "pasta for dinner", tags=["dinner"])
    for other in (gone, away):
        await in_db(_edge_past_checks, alice, kept, other)
    assert texts(await ask(alice, EAT)) == ["pasta for dinner"]


def _edge_past_checks(user: User, source: Memory, target: Memory) -> None:
    MemoryEdge.objects.create(user=user, source=source, target=target)


async def test_links_are_followed_one_hop_from_the_best(
    alice: User, note: MakeNote, kitchen: dict[str, Memory]
) -> None:
    curry = kitchen["The hotter the Thai curry the better, says the user."]
    shop = await in_db(note, alice, "Mr Somchai closes at nine.")
    his_car = await in_db(note, alice, "His van is blue.")
    await in_db(edge_create, user_id=alice.pk, source_id=shop.pk, target_id=curry.pk)
    await in_db(edge_create, user_id=alice.pk, source_id=shop.pk, target_id=his_car.pk)
    result = await ask(alice, EAT)
    (linked,) = [
        memory for memory in result["memories"] if memory["text"] == "Mr Somchai closes at nine."
    ]
    assert linked["via"] == curry.note_id
    assert "His van is blue." not in texts(result)


async def test_a_weak_link_leads_nowhere(
    alice: User, note: MakeNote, kitchen: dict[str, Memory]
) -> None:
    curry = kitchen["The hotter the Thai curry the better, says the user."]
    shop = await in_db(note, alice, "Mr Somchai closes at nine.")
    await in_db(edge_create, user_id=alice.pk, source_id=curry.pk, target_id=shop.pk, weight=0.1)
    assert "Mr Somchai closes at nine." not in texts(await ask(alice, EAT))


async def test_untrusted_notes_are_marked(alice: User) -> None:
    page = Change(actor=Origin.IMPORT, trust=Trust.UNTRUSTED)

    content = "Dinner is at evil.example."
    await in_db(memory_create, user_id=alice.pk, content=content, tags=["dinner"], change=page)
    result = await ask(alice, EAT)
    assert result["memories"][0]["untrusted"] is True
    assert result["note"] == UNTRUSTED_HINT
    recalled = await Tools(user_id=alice.pk).call("recall_memory", keywords=["dinner"])
    assert recalled["memories"][0]["untrusted"] is True


async def test_what_it_returns_counts_as_read(alice: User, kitchen: dict[str, Memory]) -> None:
    result = await ask(alice, EAT)

    def read() -> set[str]:
        return {row.content for row in Memory.objects.for_user(alice).filter(access_count=1)}

    assert await in_db(read) == set(texts(result))


async def test_a_search_that_hangs_does_not_hold_up_the_others(
    alice: User, kitchen: dict[str, Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    release, searched = threading.Event(), deep.angle_search

    def slow(user_id: Any, angle: Any) -> Any:
        if "eat" in angle.words:
            release.wait(PATIENCE)
        return searched(user_id, angle)

    await ask(alice, EAT)  # with all that a first search loads
    monkeypatch.setattr(deep, "angle_search", slow)
    monkeypatch.setattr(deep, "SEARCH_SECONDS", 3.0)
    try:
        assert set(texts(await ask(alice, EAT))[:3]) == FOOD.keys()
    finally:
        release.set()


async def test_when_no_search_ends_in_time_it_says_so(
    alice: User, kitchen: dict[str, Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deep, "SEARCH_SECONDS", 0.0)
    with pytest.raises(Unavailable, match="memory_search"):
        await ask(alice, EAT)


@pytest.mark.parametrize("query", ["", "   ", "\ud800", "a\x00b", "x" * 10_001])
async def test_what_is_no_question_is_refused(alice: User, query: str) -> None:
    tools = Tools(user_id=alice.pk)
    with pytest.raises(IzzyError):
        await tools.call("deep_memory", query=query)
    assert not tools.progress


async def test_a_note_is_found_by_the_occasion_on_which_it_matters(
    alice: User, bob: User, note: MakeNote, kitchen: dict[str, Memory]
) -> None:
    trip = "order paella for two"
    occasions = ["ordering paella in Spain", "choosing a restaurant"]
    await in_db(note, bob, "Bob's own.", occasions=occasions)
    kept = await in_db(note, alice, "A rash came of it once.", occasions=["moving house"])
    assert kept.content not in texts(await ask(alice, trip))
    await in_db(memory_update, user_id=alice.pk, memory_id=kept.pk, occasions=occasions)
    await in_db(
        note, alice, "Not any more.", occasions=occasions, valid_to=timezone.now() - timedelta(days=1)
    )
    found = texts(await ask(alice, trip))
    assert kept.content in found
    assert not {"Bob's own.", "Not any more."} & set(found)
