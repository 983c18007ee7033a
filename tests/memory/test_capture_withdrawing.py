"""Things that wait to be read are taken back: at the request of the user, with a message, by a purge."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.core.db.pool import in_db
from apps.core.purging.trace import Fragments, Trace
from apps.memory.capture.windows import (
    conversation_withdraw,
    user_withdraw,
    windows_scrub,
    windows_withdraw,
)
from tests.memory.capturing import (
    LINZ,
    YES,
    add,
    captured,
    notes,
    read,
    said,
    talk,
    windows,
)
from tests.peers.anthropic_server import AnthropicServer, Reply, reply, tool
from tests.peers.capture_model import CaptureModel, Rule

pytestmark = pytest.mark.django_db(transaction=True)


async def test_who_switches_capture_off_has_what_waits_dropped(
    alice: User, peer: AnthropicServer
) -> None:
    await in_db(add, alice, talk("I live in Linz.", "Nice."))
    await in_db(lambda: preferences_update(user_id=alice.pk, capture=False))
    assert (await read(alice)).windows == 0
    (window,) = await windows(alice)
    assert (window.state, window.segments) == ("withdrawn", [])
    assert peer.messages == []


async def test_a_replaced_message_is_taken_out_of_what_waits(alice: User, peer: AnthropicServer) -> None:
    peer.fallback = CaptureModel(LINZ, Rule("violin", "The user plays the violin."))
    first, second = said("I live in Linz."), said("I play the violin.")
    place = await in_db(add, alice, [first, second])
    await in_db(
        lambda: windows_withdraw(user_id=alice.pk, conversation_id=place, message_ids=[first.message_id])
    )
    await read(alice)
    assert await notes(alice) == ["The user plays the violin."]


async def test_a_window_of_nothing_but_replaced_messages_is_withdrawn(
    alice: User, peer: AnthropicServer
) -> None:
    one = said("I live in Linz.")
    place = await in_db(add, alice, [one])
    await in_db(
        lambda: windows_withdraw(user_id=alice.pk, conversation_id=place, message_ids=[one.message_id])
    )
    (window,) = await windows(alice)
    assert (window.state, window.segments) == ("withdrawn", [])


@pytest.mark.parametrize("purpose", ["judge", "save_items"])
async def test_what_is_taken_back_while_it_is_read_is_not_saved(
    alice: User, peer: AnthropicServer, purpose: str
) -> None:
    model, reached = CaptureModel(LINZ), asyncio.Event()
    place = await in_db(add, alice, [said("I live in Linz.")])
    held: list[Reply] = []

    def answer(request: dict[str, Any]) -> Reply:
        given = model(request)
        if request["tools"][0]["name"] == purpose:
            given.hold_after = 1
            held.append(given)
            reached.set()
        return given

    async def take_back() -> None:
        await reached.wait()
        await in_db(lambda: conversation_withdraw(user_id=alice.pk, conversation_id=place))
        held[0].release.set()

    peer.fallback = answer
    await asyncio.gather(read(alice), take_back())
    assert await notes(alice) == []
    (window,) = await windows(alice)
    assert (window.state, window.segments) == ("withdrawn", [])


def purge_of(user: User, message: UUID) -> Trace:
    """A purge that redacts a message."""
    nothing = Fragments()
    return Trace(
        user_id=user.pk,
        source="note",
        ids=frozenset(),
        own=nothing,
        exclusive=nothing,
        messages=frozenset([message]),
    )


async def test_scrubbing_a_message_empties_its_windows(alice: User, peer: AnthropicServer) -> None:
    one = said("I live in Linz.")
    peer.add(reply(tool("judge", {"worth_remembering": False, "reason": "only says Linz"})))
    await captured(alice, one)
    (window,) = await windows(alice)
    assert window.gate_reason == "only says Linz"
    await in_db(windows_scrub, purge_of(alice, one.message_id), {})
    (window,) = await windows(alice)
    assert window.gate_reason == ""


async def test_what_is_scrubbed_while_it_is_read_is_not_saved(
    alice: User, peer: AnthropicServer
) -> None:
    one = said("I live in Linz.")
    await in_db(add, alice, [one])
    held, asked = reply(tool("judge", YES), hold_after=1), asyncio.Event()

    def judge(request: dict[str, Any]) -> Reply:
        asked.set()
        return held

    peer.add(judge)
    peer.fallback = CaptureModel(LINZ)

    async def purge() -> None:
        await asked.wait()
        await in_db(windows_scrub, purge_of(alice, one.message_id), {})
        held.release.set()

    await asyncio.gather(read(alice), purge())
    assert await notes(alice) == []
    (window,) = await windows(alice)
    assert window.state == "withdrawn"


@pytest.mark.parametrize("withdraw", ["user", "message", "conversation"])
async def test_what_is_withdrawn_keeps_nothing_of_what_a_model_thought_of_it(
    alice: User, peer: AnthropicServer, withdraw: str
) -> None:
    """The gate's reason repeats the words."""
    one = said("I live in Linz.")
    peer.add(reply(tool("judge", YES | {"reason": "tells of Linz"})), reply(status=529))
    place = await in_db(add, alice, [one])
    await read(alice)
    (window,) = await windows(alice)
    assert (window.state, window.gate_reason) == ("waiting", "tells of Linz")
    ids = {"user_id": alice.pk, "conversation_id": place}
    await in_db(
        {
            "user": lambda: user_withdraw(user_id=alice.pk),
            "message": lambda: windows_withdraw(**ids, message_ids=[one.message_id]),
            "conversation": lambda: conversation_withdraw(**ids),
        }[withdraw]
    )
    (window,) = await windows(alice)
    assert (window.state, window.gate_reason, window.segments) == ("withdrawn", "", [])
