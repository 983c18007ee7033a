"""Asked to think hard, the offline model looks into deep memory."""

import pytest

from apps.accounts.models import User
from apps.agent.offline.intents import Kind, intent_of
from apps.agent.turn.events import ToolProgress
from apps.core.db.pool import in_db
from apps.memory.models import Origin, Trust
from apps.memory.notes.creation import memory_create
from apps.memory.notes.revisions import Change
from tests.agent.test_offline_conversation import Conversation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(
    ("words", "topic"),
    [
        ("think hard about what you know about my food", "my food"),
        ("Think hard: what do I like to eat?", "what do I like to eat"),
        ("Izzy, please think deeply about everything you know about Anna", "Anna"),
        ("what do you know deep down about me?", "me"),
        ("What do you know about me, deep down?", "me"),
        ("search deep in your memory for holidays", "holidays"),
    ],
)
def test_these_words_ask_for_it(words: str, topic: str) -> None:
    assert (intent_of(words).kind, intent_of(words).topic) == (Kind.DEEP, topic)


@pytest.mark.parametrize(
    "words", ["what do you know about deep learning?", "I like to think hard", "think"]
)
def test_these_do_not(words: str) -> None:
    assert intent_of(words).kind != Kind.DEEP


async def test_it_finds_what_was_noted_under_other_words(alice: User, offline: None) -> None:
    page = Change(actor=Origin.USER, trust=Trust.UNTRUSTED)
    await in_db(
        memory_create, user_id=alice.pk, content="The user is allergic to shellfish.", tags=["allergy"]
    )
    await in_db(
        memory_create, user_id=alice.pk, content="Try the snails.", tags=["cuisine"], change=page
    )
    talk = Conversation(alice)
    answer = await talk.say("think hard about what I like to eat")
    assert talk.used == ["deep_memory"]
    assert "- You are allergic to shellfish." in answer
    assert "- Try the snails. *(from an untrusted source)*" in answer
    assert talk.turn is not None
    steps = [event.data["status"] for event in talk.turn.of(ToolProgress)]
    assert steps == ["expanding", "searching", "found"]


async def test_it_says_when_there_is_nothing(alice: User, offline: None) -> None:
    answer = await Conversation(alice).say("what do you know deep down about my car?")
    assert answer == "I found nothing about “my car” in your notes."
