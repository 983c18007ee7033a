"""Capture remembers nothing twice, and keeps apart what differs."""

from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.memory.models import Origin, Trust
from apps.memory.notes.changes import memory_archive
from apps.memory.notes.creation import memory_create
from apps.memory.notes.revisions import Change
from apps.memory.similarity import same_words
from apps.search import spaces
from tests.memory.capturing import LINZ, captured, note, notes, said
from tests.peers.anthropic_server import AnthropicServer
from tests.peers.capture_model import CaptureModel, Rule

pytestmark = pytest.mark.django_db(transaction=True)


async def test_what_izzy_put_beside_the_conversation_is_not_saved_again(
    alice: User, peer: AnthropicServer
) -> None:
    shown = [(None, "The user's bicycle is a blue Koga.")]
    peer.fallback = CaptureModel(Rule("Koga", "The user's bicycle is a blue Koga."))
    tally = await captured(
        alice,
        said("Which lock fits my bike?", shown=shown),
        said("For your bicycle, the blue Koga, take a folding lock.", "assistant", shown=shown),
    )
    assert (tally.injected_again, tally.added) == (1, 0)
    assert await notes(alice) == []


async def test_an_echo_of_the_assistant_adds_no_weight(alice: User, peer: AnthropicServer) -> None:
    known = await in_db(
        lambda: memory_create(user_id=alice.pk, content="The user's bicycle is a blue Koga.")
    )
    peer.fallback = CaptureModel(Rule("Koga", "The user's bicycle is a blue Koga."))
    await captured(alice, said("Your bicycle is a blue Koga, isn't it?", "assistant"))
    after = await note(alice, pk=known.pk)
    assert (after.importance, after.trust) == (3, "user")


async def test_what_was_archived_comes_back_where_the_user_says_it_again_whenever_it_was_to_end(
    alice: User, peer: AnthropicServer
) -> None:
    def archived() -> None:
        end = timezone.now() + timedelta(days=365)
        made = memory_create(user_id=alice.pk, content="The user lives in Linz.", valid_to=end)
        memory_archive(user_id=alice.pk, memory_id=made.pk)

    await in_db(archived)
    peer.fallback = CaptureModel(LINZ)
    before = await captured(alice, said("I live in Linz."))
    assert (before.added, await notes(alice)) == (0, []), "said before it was put away"
    await captured(alice, said("I live in Linz again.", said_at=timezone.now()))
    assert await notes(alice) == ["The user lives in Linz."]


async def test_numbers_names_and_no_are_told_apart(alice: User, peer: AnthropicServer) -> None:
    """Their vectors are nearly the same; they are different facts all the same."""
    texts = [
        "The user takes 50 mg of sertraline.",
        "The user takes 100 mg of sertraline.",
        "The user likes jazz.",
        "The user does not like jazz.",
        "The dentist appointment is on 12 March.",
        "The dentist appointment is on 19 March.",
    ]
    peer.fallback = CaptureModel(*(Rule(f"say {n}:", text) for n, text in enumerate(texts)))
    await captured(alice, *(said(f"I say {n}: {text}") for n, text in enumerate(texts)))
    assert await notes(alice) == texts


async def test_one_says_the_same_in_other_words(alice: User, peer: AnthropicServer) -> None:
    pairs = [
        "The user's dog is called Rex.",
        "User has a dog named Rex.",
        "The user plays chess on Sundays.",
        "On Sundays, user plays chess.",
    ]
    peer.fallback = CaptureModel(*(Rule(f"say {n}:", text) for n, text in enumerate(pairs)))
    tally = await captured(alice, *(said(f"I say {n}: {text}") for n, text in enumerate(pairs)))
    assert await notes(alice) == [pairs[0], pairs[2]]
    assert tally.merged == 2


async def test_what_izzy_saved_during_the_turn_does_not_count_twice(
    alice: User, peer: AnthropicServer
) -> None:
    """The same message cannot make a note more important that was saved from it."""
    one = said("My dog is called Rex.")
    from_it = Change(actor=Origin.ASSISTANT, trust=Trust.ASSISTANT, message_id=one.message_id)
    known = await in_db(
        lambda: memory_create(user_id=alice.pk, content="The user's dog is called Rex.", change=from_it)
    )
    peer.fallback = CaptureModel(Rule("Rex", "The user has a dog called Rex."))
    await captured(alice, one)
    assert (await note(alice)).importance == 3
    await captured(alice, said("Did I mention Rex, my dog?"))
    assert (await note(alice, pk=known.pk)).importance == 4


async def test_without_the_embedder_notes_are_compared_by_their_words(
    alice: User, peer: AnthropicServer, settings: Settings
) -> None:
    settings.IZZY_EMBEDDER, settings.OLLAMA_URL = "ollama:nomic-embed-text", "http://127.0.0.1:9"
    await in_db(lambda: memory_create(user_id=alice.pk, content="The user's dog is called Rex."))
    peer.fallback = CaptureModel(
        Rule("Rex", "User's dog is called Rex."), Rule("chess", "The user plays chess.")
    )
    tally = await captured(alice, said("My dog is called Rex and I play chess."))
    spaces.note_up()
    assert (tally.merged, tally.added) == (1, 1)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("The user has a sailing boat.", "The user wants a sailing boat.", False),
        ("The user chose plan B.", "The user chose plan C.", False),
        ("The user's dog is named Rex.", "The user's dog is called Rex.", True),
        ("The user's site is https://www.anna.example/", "The user's site is anna.example.", True),
    ],
)
def test_going_by_their_words_alone(first: str, second: str, same: bool) -> None:
    assert same_words(first, second) is same
