"""Answers that are too large, or come in too many pieces, end well."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.agent.model.answer import merged
from apps.agent.model.client import ModelError, ModelEvent, TextChunk
from apps.agent.turn.events import Response, TextDelta
from tests.agent.turns import Turn
from tests.peers.anthropic_server import AnthropicServer, reply, tool

pytestmark = pytest.mark.django_db(transaction=True)


async def test_two_megabytes_in_one_piece_are_cut_as_at_the_length_limit(
    alice: User, peer: AnthropicServer, settings: Settings
) -> None:
    settings.IZZY_ANSWER_CHARS = 100_000
    peer.add(reply("x" * 2_000_000))
    turn = Turn(alice)
    await turn.run()
    assert "".join(event.text for event in turn.of(TextDelta)) == "x" * 100_000
    (end,) = turn.of(Response)
    assert turn.store.messages[-1][3] == "max_tokens"
    assert (end.notice or {})["code"] == "max_tokens"


async def test_so_is_a_tool_call_without_end(
    alice: User, peer: AnthropicServer, settings: Settings
) -> None:
    settings.IZZY_ANSWER_CHARS = 1_000
    peer.add(reply(tool("think", {"thought": "hm " * 5_000})), reply("Then not."))
    turn = Turn(alice)
    await turn.run()
    assert turn.store.results[0]["is_error"] is True
    assert turn.of(Response)[-1].text.endswith("Then not.")


async def test_many_small_pieces_become_fewer_while_the_reader_is_busy(
    alice: User, peer: AnthropicServer
) -> None:
    peer.add(reply("ab " * 5_000))
    turn = Turn(alice)
    await turn.run()
    pieces = [event.text for event in turn.of(TextDelta)]
    assert "".join(pieces) == "ab " * 5_000
    assert len(turn.of(Response)) == 1


async def test_what_comes_while_the_reader_is_busy_is_one_piece_and_errors_come_last() -> None:
    gate = asyncio.Event()

    async def events() -> AsyncGenerator[ModelEvent, None]:
        for number in range(1_000):
            yield TextChunk(f"{number} ")
        gate.set()
        raise ModelError("stream_cut", "cut")

    seen: list[str] = []

    async def read() -> None:
        async for event in merged(events()):
            await gate.wait()
            assert isinstance(event, TextChunk)
            seen.append(event.text)

    with pytest.raises(ModelError):
        await read()
    assert "".join(seen) == "".join(f"{number} " for number in range(1_000))
    assert len(seen) <= 2
