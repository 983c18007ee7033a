"""Two web processes with Redis between them: what runs in one is seen in the other as it happens."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from channels.layers import get_channel_layer
from pytest_django import Settings
from redis.asyncio import Redis

from apps.accounts.models import User
from apps.builder import nudges
from apps.chat.live import hub, relay
from apps.chat.runner import registry as runner
from apps.chat.runner.registry import registry
from apps.chat.runner.work import conversation_take
from apps.chat.services import turn_stop
from apps.core.database import in_db
from tests.chat.client import connected
from tests.chat.rows import conversation, turn
from tests.peers.anthropic_server import AnthropicServer, reply
from tests.peers.ports import free_port
from tests.peers.redis_server import redis_on
from tests.waiting import PATIENCE, until


def through(settings: Settings, url: str) -> None:
    settings.CHANNEL_LAYERS = {
        "default": {
            "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
            "CONFIG": {"hosts": [url], "prefix": "izzy-test"},
        }
    }


@pytest.fixture(autouse=True)
def _over() -> Iterator[None]:
    """The exchange of nudges would go on looking for a Redis that is gone."""
    yield
    nudges.close()


@pytest.fixture
def redis(redis_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis as channel layer; the rows are not looked at, so that only Redis can deliver."""
    through(settings, redis_url)
    monkeypatch.setattr(hub, "POLL_SECONDS", 3600)
    monkeypatch.setattr(runner, "LOOK_SECONDS", 3600)
    monkeypatch.setattr(runner, "RESCUE_SECONDS", 3600)


def elsewhere(
    name: str, monkeypatch: pytest.MonkeyPatch, work: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Runs `work` in an event loop of its own, as another process would: with another name and another runner."""

    async def run() -> None:
        with monkeypatch.context() as other:
            other.setattr(relay, "PROCESS", name)
            registry()
        await work()

    asyncio.run(run())


async def listened_to(url: str, group: str) -> None:
    """Until somebody hears what is sent to the group: Redis keeps nothing for who comes later."""
    async with Redis.from_url(url) as store:

        async def is_heard() -> bool:
            ((_, listeners),) = await store.pubsub_numsub(f"izzy-test__group__{group}")
            return bool(listeners)

        await until(is_heard)


async def test_text_reaches_a_page_of_another_process_as_it_comes(
    alice: User, model: AnthropicServer, redis: None, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = reply("One two three four", hold_after=5)
    model.add(held)
    place = await conversation(alice)
    registry().start()
    began, go_on = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch() -> list[str]:
        seen: list[str] = []

        async def work() -> None:
            async with connected(alice) as page:
                await page.snapshot(place)
                await listened_to(redis_url, f"chat.{place}")
                loop.call_soon_threadsafe(began.set)
                queued = await page.until("turn_queued")
                while page.text(queued["turn"]) != "One two three ":
                    await page.until("text_delta")
                loop.call_soon_threadsafe(go_on.set)
                end = await page.ended()
                seen.extend([page.text(queued["turn"]), end["text"]])
            await registry().close()

        elsewhere("another-process", monkeypatch, work)
        return seen

    watching = asyncio.ensure_future(asyncio.to_thread(watch))
    await asyncio.wait_for(began.wait(), PATIENCE)
    async with connected(alice) as page:
        await page.say("Count", conversation=place)
        await asyncio.wait_for(go_on.wait(), PATIENCE)
        held.release.set()
        await page.ended()
        await registry().idle()
    assert await watching == ["One two three four"] * 2


async def test_a_stop_from_another_process_is_heard_at_once(
    alice: User, model: AnthropicServer, redis: None, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = reply("One two three four", hold_after=5)
    model.add(held)
    place = await conversation(alice)

    def stop() -> None:
        async def work() -> None:
            taken = partial(conversation_take, runner="another-process")
            monkeypatch.setattr(runner, "conversation_take", taken)
            await in_db(lambda: turn_stop(user_id=alice.id, conversation_id=place))
            conversation_id = (await turn(queued["turn"])).conversation_id
            await registry().kick(conversation_id)
            await until(is_stopped)
            await registry().close()

        elsewhere("another-process", monkeypatch, work)

    async def is_stopped() -> bool:
        return (await turn(queued["turn"])).state == "stopped"

    async with connected(alice) as page:
        queued = await page.say("Count", conversation=place)
        await page.until("text_delta")
        await listened_to(redis_url, relay.NUDGES)
        await asyncio.to_thread(stop)
        end = await page.ended()
        held.release.set()
        await registry().idle()
    assert end["type"] == "turn_stopped"


async def test_a_redis_that_comes_later_is_found(settings: Settings, tmp_path: Path) -> None:
    port = free_port()
    through(settings, f"redis://127.0.0.1:{port}/0")
    place = uuid4()
    came = asyncio.Event()
    here, there = relay.new_relay(lambda *_: None), relay.new_relay(lambda *_: None)
    assert here is not None
    assert there is not None
    there._process = "another-process"
    here.nudged = lambda conversation_id: came.set() if conversation_id == place else None
    await asyncio.sleep(0.2)
    with redis_on(port, tmp_path):
        while not came.is_set():
            there.nudge(place)
            await asyncio.sleep(0.1)
        await asyncio.gather(here.close(), there.close())
        await get_channel_layer().flush()


async def test_without_redis_a_page_opens_and_sees_another_process_by_its_rows(
    alice: User, model: AnthropicServer, settings: Settings
) -> None:
    through(settings, f"redis://127.0.0.1:{free_port()}/0")
    model.add(reply("By the rows."))
    async with connected(alice) as page:
        sent = await page.say("Hi")
        assert (await page.ended())["text"] == "By the rows."
    async with connected(alice) as other:
        shown = await other.snapshot(sent["conversation"])
        assert shown["messages"][-1]["text"] == "By the rows."
