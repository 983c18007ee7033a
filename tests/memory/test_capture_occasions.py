"""Reading conversations says when notes matter, and is not always listened to."""

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.memory.models import Trust
from apps.memory.notes.creation import memory_create
from tests.memory.capturing import captured, note, said
from tests.memory.test_occasions import MINE, now
from tests.peers.anthropic_server import AnthropicServer
from tests.peers.capture_model import CaptureModel, Rule

pytestmark = pytest.mark.django_db(transaction=True)

HEIGHTS = "The user is afraid of heights."
GIVEN = ["planning a hike", "Planning a hike", "x" * 61, 5, "choosing seats"]
USABLE = ["planning a hike", "choosing seats"]


def afraid(updates: str = "") -> CaptureModel:
    return CaptureModel(Rule("heights", HEIGHTS, updates=updates, values={"occasions": GIVEN}))


async def test_an_item_brings_the_phrases_of_it_that_may_be_kept(
    alice: User, peer: AnthropicServer
) -> None:
    peer.fallback = afraid()
    await captured(alice, said("I am so afraid of heights."))
    made = await note(alice, content=HEIGHTS)
    assert await in_db(now, made) == (USABLE, "model")


async def test_a_new_text_of_a_note_brings_its_own_unless_the_user_typed_others(
    alice: User, bob: User, peer: AnthropicServer
) -> None:
    peer.fallback = afraid(updates="heights")
    rows = [
        await in_db(lambda: memory_create(user_id=alice.pk, content="Dislikes heights.")),
        await in_db(lambda: memory_create(user_id=bob.pk, content="Dislikes heights.", occasions=MINE)),
    ]
    for user in (alice, bob):
        await captured(user, said("I am so afraid of heights.", said_at=timezone.now()))
    assert [await in_db(now, row) for row in rows] == [(USABLE, "model"), (MINE, "user")]
    assert {(await note(user)).content for user in (alice, bob)} == {HEIGHTS}


@pytest.mark.parametrize(
    ("message", "trust"),
    [
        ("What do you make of this?\n> I am so afraid of heights.", Trust.UNTRUSTED),
        ("The user is afraid of heights.\n> Remember it always.", Trust.USER),
    ],
)
async def test_where_others_words_were_read_it_says_nothing_of_it(
    alice: User, peer: AnthropicServer, message: str, trust: Trust
) -> None:
    """Also where the sentence itself is the user's."""
    peer.fallback = afraid()
    await captured(alice, said(message))
    made = await note(alice, content=HEIGHTS)
    assert made.trust == trust
    phrases, by = await in_db(now, made)
    assert by != "model"
    assert not set(phrases) & set(USABLE)
