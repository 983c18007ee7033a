"""News of a build is taken up at once by whoever waits for it, without looking at the rows by themselves."""

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.builder import api
from apps.builder.builds import messages
from apps.builder.builds.running import build_answer
from apps.builder.models import Build, State
from apps.builder.runner import pool as pools
from apps.builder.runner.pool import BuildPool
from apps.chat.turns import scheduler as runner
from apps.core.db.pool import in_db
from apps.core.jobs.bus import Bus, bus
from tests.builder.scripts import SCHEMA, Cast, last_result, register, write
from tests.builder.test_in_conversation import build_message, of_type, working
from tests.builder.test_rest import ASK, stream
from tests.chat.client import connected, program_of
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.peers.ports import free_port
from tests.peers.redis_server import layers
from tests.waiting import until


@pytest.fixture
def unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody looks at the rows unasked, so that only a notice can help."""
    monkeypatch.setattr(pools, "LOOK_SECONDS", 3600)
    monkeypatch.setattr(api, "POLL_SECONDS", 3600)
    monkeypatch.setattr(runner, "LOOK_SECONDS", 3600)
    monkeypatch.setattr(runner, "RESCUE_SECONDS", 3600)


def asked() -> bool:
    return Build.objects.unscoped().filter(messages__type="question", messages__read=False).exists()


async def test_request_answer_and_messages_are_heard_at_once(
    alice: User, model: AnthropicServer, pool: BuildPool, unasked: None
) -> None:
    program = await program_of(alice)
    model.add(reply(tool("ask_user", {"question": "How many sides?"})), write(), register())
    async with working(pool):
        await until(lambda: pool.news is not None)
        build = (await program.post("builds/", ASK)).json()["build_id"]
        await until(lambda: in_db(asked))
        await in_db(lambda: build_answer(user_id=alice.pk, build_id=build, text="a hundred"))
        told = await stream(program, build)
    assert last_result(model.messages[1])["content"] == "The user answers: a hundred"
    assert told[-1][1] == "complete"


async def test_a_cancel_is_heard_at_once(
    alice: User, model: AnthropicServer, pool: BuildPool, unasked: None
) -> None:
    program = await program_of(alice)
    model.add(reply(tool("ask_user", {"question": "How many sides?"})))
    async with working(pool):
        await until(lambda: pool.news is not None)
        build = (await program.post("builds/", ASK)).json()["build_id"]
        await until(lambda: in_db(asked))
        assert (await program.post(f"builds/{build}/cancel/", {})).status_code == 202
        await stream(program, build)
    found = await in_db(lambda: Build.objects.unscoped().get())
    assert found.state == State.CANCELLED


async def test_the_page_of_the_conversation_is_told_at_once(
    alice: User, model: AnthropicServer, pool: BuildPool, unasked: None
) -> None:
    request_build = {"name": "dice_roller", "description": "Rolls dice.", "input_schema": SCHEMA}
    model.fallback = Cast(
        chat=[reply(tool("request_capability", request_build)), reply("I build it.")],
        builder=[write(), register()],
    )
    async with connected(alice) as page, working(pool):
        await page.say("Roll dice")
        await page.ended()
        done = await build_message(page, of_type("complete"))
        told = await page.ended()
    assert done["message"]["payload"]["text"] == "dice_roller is ready."
    assert "**dice_roller** is ready" in told["text"]


async def test_where_no_word_arrives_the_rows_serve(
    alice: User,
    model: AnthropicServer,
    pool: BuildPool,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.CHANNEL_LAYERS = layers(f"redis://127.0.0.1:{free_port()}/0")
    unheard = Bus("elsewhere")
    monkeypatch.setattr(messages, "bus", lambda: unheard)
    program = await program_of(alice)
    model.add(write(), register())
    async with working(pool):
        build = (await program.post("builds/", ASK)).json()["build_id"]
        told = await stream(program, build)
    unheard.close()
    bus().close()
    assert told[-1][1] == "complete"
