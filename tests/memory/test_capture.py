"""Izzy remembers by itself: a conversation is cut into windows, gated, extracted, and kept without duplicates."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.agent.models import ModelCall
from apps.core.db.pool import in_db
from apps.memory.capture.windows import Utterance
from apps.memory.models import Memory, MemoryEdge
from apps.memory.notes.creation import memory_create
from tests.memory.capturing import MORNING, add, captured, note, notes, read, said, talk, windows
from tests.peers.anthropic_server import AnthropicServer
from tests.peers.capture_model import CaptureModel, Rule, segments

pytestmark = pytest.mark.django_db(transaction=True)

CHATTER = "Well, the weather was nice and we walked around the old town for an hour without any hurry. "


def forty_messages() -> list[Utterance]:
    """Small talk of about 60 tokens a message, with six things worth knowing, one said twice, one that changes."""
    texts = [f"{CHATTER}{CHATTER}{CHATTER}That was number {n}." for n in range(40)]
    texts[2] = "I live in Graz, in a flat by the river."
    texts[8] = "My sister Anna is allergic to shellfish."
    texts[14] = "I work as a nurse at the Kepler hospital."
    texts[20] = "Did I say that Anna, my sister, is allergic to shellfish?"
    texts[26] = "I have moved to Linz, so I do not live in Graz any more."
    texts[32] = "Project Falcon has to be done by 12 October."
    return talk(*texts)


RULES = (
    Rule("live in Graz, in", "The user lives in Graz."),
    Rule("sister.*allergic|allergic.*sister", "The user's sister Anna is allergic to shellfish."),
    Rule("nurse", "The user works as a nurse at the Kepler hospital."),
    Rule("moved to Linz", "The user lives in Linz.", replaces="Graz"),
    Rule(
        "Falcon",
        "Project Falcon has to be done by 12 October.",
        values={"kind": "project", "importance": 4},
    ),
)
REMEMBERED = [
    "The user's sister Anna is allergic to shellfish.",
    "The user works as a nurse at the Kepler hospital.",
    "The user lives in Linz.",
    "Project Falcon has to be done by 12 October.",
]


async def test_a_conversation_of_forty_messages_becomes_a_handful_of_notes(
    alice: User, peer: AnthropicServer
) -> None:
    model = peer.fallback = CaptureModel(*RULES)
    place = await in_db(add, alice, forty_messages())
    cut = await windows(alice)
    assert 5 <= len(cut) <= 10
    assert all(350 <= window.tokens <= 500 for window in cut[:-1])
    tally = await read(alice)
    assert await notes(alice) == REMEMBERED
    assert (tally.added, tally.merged, tally.superseded) == (4, 1, 1)
    assert len(model.gates) == len(cut)
    assert 0 < len(model.extractions) < len(cut)
    purposes = await in_db(
        lambda: list(ModelCall.objects.for_user(alice).values_list("purpose", "conversation_id"))
    )
    assert purposes.count(("gate", place)) == len(cut)
    assert purposes.count(("extraction", place)) == len(model.extractions)


async def test_what_changes_supersedes_what_was(alice: User, peer: AnthropicServer) -> None:
    peer.fallback = CaptureModel(*RULES)
    await captured(alice, *forty_messages())
    old, new = (
        await note(alice, content="The user lives in Graz."),
        await note(alice, content="The user lives in Linz."),
    )
    assert (old.status, old.superseded_by_id) == ("superseded", new.pk)
    assert old.valid_from == MORNING + timedelta(minutes=2)
    assert old.valid_to == new.valid_from == MORNING + timedelta(minutes=26)
    edges = await in_db(lambda: list(MemoryEdge.objects.for_user(alice).filter(relation="supersedes")))
    assert [(edge.source_id, edge.target_id) for edge in edges] == [(new.pk, old.pk)]


async def test_what_ends_a_note_without_naming_it_is_read_beside_it(
    alice: User, peer: AnthropicServer
) -> None:
    peer.fallback = CaptureModel(
        Rule("blue Skoda", "The user drives a blue Skoda."),
        Rule("red Golf", "The user drives a red Golf.", replaces="Skoda"),
    )
    await captured(alice, said("I drive a blue Skoda."))
    await captured(
        alice, said("I sold the old one: we have a red Golf now.", said_at=MORNING + timedelta(days=2))
    )
    assert await notes(alice) == ["The user drives a red Golf."]


@pytest.mark.parametrize("name", ["America/Los_Angeles", "Pacific/Auckland", "UTC"])
async def test_days_that_the_extractor_names_are_the_users_and_the_last_one_holds(
    alice: User, peer: AnthropicServer, name: str
) -> None:
    zone = ZoneInfo(name)
    await in_db(lambda: preferences_update(user_id=alice.pk, time_zone=name))
    days = {"valid_from": "2026-03-01", "valid_to": "2026-03-31"}
    model = peer.fallback = CaptureModel(
        Rule("Oslo", "The user rents a flat in Oslo.", values=days),
        Rule("fast", "The user fasts.", values=dict.fromkeys(days, "2026-03-08")),
        Rule("pool", "The pool has to be clean.", values={"valid_to": "2026-03-08T18:00"}),
        Rule(
            "bees", "The user keeps bees.", values={"valid_from": "2026-03-01", "valid_to": "9999-12-31"}
        ),
    )
    texts = "I rent a flat in Oslo in March. I fast on the 8th. The pool has to be clean by six. I keep bees now."
    await captured(alice, said(texts, said_at=datetime(2026, 3, 8, 9, tzinfo=zone)))
    kept = await in_db(lambda: list(Memory.objects.for_user(alice).order_by("id")))
    assert [
        tuple(at and f"{at.astimezone(zone):%m-%d %H:%M}" for at in (note.valid_from, note.valid_to))
        for note in kept
    ] == [
        ("03-01 00:00", "03-31 23:59"),
        ("03-08 00:00", "03-08 23:59"),
        ("03-08 09:00", "03-08 18:00"),
        ("03-01 00:00", None),
    ]
    await captured(alice, said("The bees buzz."))
    assert "(fact, since 2026-03-01): The user keeps bees." in model.extractions[-1]


async def test_what_the_user_says_again_weighs_more(alice: User, peer: AnthropicServer) -> None:
    peer.fallback = CaptureModel(*RULES)
    await captured(alice, *forty_messages())
    assert (await note(alice, content=REMEMBERED[0])).importance == 4
    assert (await note(alice, content=REMEMBERED[1])).importance == 3


async def test_what_holds_for_every_conversation_becomes_a_standing_note(
    alice: User, peer: AnthropicServer
) -> None:
    german = Rule("German", "The user wants answers in German.", values={"standing": True})
    peer.fallback = CaptureModel(german, Rule("violin", "The user plays the violin."))
    await captured(alice, said("Always answer in German from now on. I play the violin."))
    assert await notes(alice, category="standing") == ["The user wants answers in German."]
    assert len(await notes(alice)) == 2


async def test_a_note_knows_where_it_comes_from(alice: User, peer: AnthropicServer) -> None:
    peer.fallback = CaptureModel(*RULES)
    messages = forty_messages()
    place = await in_db(add, alice, messages)
    await read(alice)
    nurse = await note(alice, content=REMEMBERED[1])
    assert (nurse.origin, nurse.trust) == ("extraction", "user")
    assert (nurse.source_conversation_id, nurse.source_message_id) == (place, messages[14].message_id)


async def test_the_same_conversation_again_brings_no_new_note(
    alice: User, peer: AnthropicServer
) -> None:
    model = peer.fallback = CaptureModel(*RULES)
    await captured(alice, *forty_messages())
    asked = len(model.gates) + len(model.extractions)
    again = [said(one.text, one.role, said_at=one.said_at) for one in forty_messages()]
    tally = await captured(alice, *again)
    assert (tally.added, tally.superseded, tally.merged) == (0, 0, 0)
    assert await notes(alice) == REMEMBERED
    assert len(model.gates) + len(model.extractions) == asked


async def test_nor_when_it_comes_in_other_pieces_and_at_another_time(
    alice: User, peer: AnthropicServer
) -> None:
    """Cut elsewhere no window is known by its words; then each item has to be known by what it says."""
    peer.fallback = CaptureModel(*RULES)
    await captured(alice, *forty_messages())
    before = await in_db(lambda: alice_rows(alice))
    later = [
        said(one.text, one.role, said_at=one.said_at + timedelta(days=3)) for one in forty_messages()[1:]
    ]
    tally = await captured(alice, *later)
    assert tally.windows > 0
    assert tally.repeated < tally.windows
    assert tally.added == tally.superseded == 0
    assert await in_db(lambda: alice_rows(alice)) == before


def alice_rows(user: User) -> list[Any]:
    rows = Memory.objects.with_deleted(user.pk).order_by("id")
    return list(rows.values_list("id", "content", "status", "valid_from", "valid_to"))


async def test_two_windows_share_about_a_hundred_tokens_and_save_nothing_twice(
    alice: User, peer: AnthropicServer
) -> None:
    model = peer.fallback = CaptureModel(Rule("number", "The user numbers their walks."))
    await captured(alice, *forty_messages())
    first, second = model.gates[0], model.gates[1]
    shared = [seen for seen in segments(second) if "read before" in seen.marks]
    assert shared
    assert {seen.text for seen in shared} <= {seen.text for seen in segments(first)}
    assert await notes(alice) == ["The user numbers their walks."]


async def test_an_item_that_rests_on_the_overlap_alone_was_read_before(
    alice: User, peer: AnthropicServer
) -> None:
    filler = [CHATTER * 5 for _ in range(3)]
    messages = talk(*filler, "I keep bees on the roof.", CHATTER * 4, CHATTER * 5)
    model = peer.fallback = CaptureModel(
        Rule("bees", "The user keeps bees on the roof."), Rule("weather", "The user likes walks.")
    )
    await captured(alice, *messages)
    holding = [text for text in model.extractions if "bees" in text]
    if len(holding) > 1:
        assert (await note(alice, content="The user keeps bees on the roof.")).importance == 3


async def test_new_notes_are_linked_to_close_neighbours(alice: User, peer: AnthropicServer) -> None:
    near = await in_db(
        lambda: memory_create(user_id=alice.pk, content="The user is allergic to peanuts.")
    )
    far = await in_db(lambda: memory_create(user_id=alice.pk, content="The car needs new brakes."))
    peer.fallback = CaptureModel(Rule("shellfish", "The user is allergic to shellfish."))
    await captured(alice, said("I am allergic to shellfish."))
    made = await note(alice, content="The user is allergic to shellfish.")
    edges = await in_db(lambda: list(MemoryEdge.objects.for_user(alice)))
    assert [(edge.source_id, edge.target_id, edge.relation) for edge in edges] == [
        (made.pk, near.pk, "related")
    ]
    assert 0.5 <= edges[0].weight < 0.85
    assert far.pk not in {edge.target_id for edge in edges}


async def test_an_update_keeps_the_note_and_its_id(alice: User, peer: AnthropicServer) -> None:
    known = await in_db(lambda: memory_create(user_id=alice.pk, content="The user runs a marathon."))
    peer.fallback = CaptureModel(
        Rule("Berlin", "The user runs a marathon in Berlin in October.", updates="marathon")
    )
    tally = await captured(
        alice, said("The marathon I run is the one in Berlin, in October.", said_at=known.created_at)
    )
    assert tally.merged == 1
    assert (await note(alice, pk=known.pk)).content == "The user runs a marathon in Berlin in October."
