"""Two web processes with Redis between them: what runs in one is seen in the other as it happens."""

import asyncio
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from pytest_django import Settings
from redis.asyncio import Redis

from apps.accounts.models import User
from apps.chat.stream import hub
from apps.chat.turns import scheduler as runner
from apps.chat.turns.queue import conversation_take
from apps.chat.turns.scheduler import scheduler
from apps.chat.turns.services import turn_stop
from apps.core.db.pool import in_db
from apps.core.jobs.bus import Bus
from tests.chat.client import connected
from tests.chat.rows import conversation, turn
from tests.peers.anthropic_server import AnthropicServer, reply
from tests.peers.ports import free_port
from tests.peers.redis_server import layers
from tests.waiting import PATIENCE, until


class Forgetful(Bus):
    """A bus on which one word is lost."""

    loses = "nothing"

    def send(self, topic: str, item: Any) -> None:
        if self.loses not in str(item):
            super().send(topic, item)


@pytest.fixture(autouse=True)
def _buses(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A bus for each event loop, as if each were a process."""
    buses: dict[asyncio.AbstractEventLoop, Bus] = {}

    def of_this_loop() -> Bus:
        loop = asyncio.get_running_loop()
        return buses.setdefault(loop, Forgetful(f"process-{len(buses)}"))

    monkeypatch.setattr(hub, "bus", of_this_loop)
    monkeypatch.setattr(runner, "bus", of_this_loop)
    yield
    for each in buses.values():
        each.close()


@pytest.fixture
def redis(redis_url: str, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Redis as channel layer; the rows are not looked at, so that only Redis can deliver."""
    settings.CHANNEL_LAYERS = layers(redis_url)
    monkeypatch.setattr(hub, "POLL_SECONDS", 3600)
    monkeypatch.setattr(runner, "LOOK_SECONDS", 3600)
    monkeypatch.setattr(runner, "RESCUE_SECONDS", 3600)


async def listened_to(url: str, group: str) -> None:
    """Until somebody hears what is sent to the group: Redis keeps nothing for who comes later."""
    async with Redis.from_url(url) as store:

        async def is_heard() -> bool:
            ((_, listeners),) = await store.pubsub_numsub(f"izzy-test__group__{group}")
            return bool(listeners)

        await until(is_heard)


async def test_text_reaches_a_page_of_another_process_as_it_comes(
    alice: User, model: AnthropicServer, redis: None, redis_url: str
) -> None:
    held = reply("One two three four", hold_after=5)
    model.add(held)
    place = await conversation(alice)
    scheduler().start()
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
            await scheduler().close()

        asyncio.run(work())
        return seen

    watching = asyncio.ensure_future(asyncio.to_thread(watch))
    await asyncio.wait_for(began.wait(), PATIENCE)
    async with connected(alice) as page:
        await page.say("Count", conversation=place)
        await asyncio.wait_for(go_on.wait(), PATIENCE)
        held.release.set()
        await page.ended()
        await scheduler().idle()
    assert await watching == ["One two three four"] * 2


async def test_a_page_that_missed_an_event_reads_the_rows_at_once(
    alice: User, model: AnthropicServer, redis: None, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event that it missed is the last before a pause; the next that comes shows that something is missing."""
    monkeypatch.setattr(Forgetful, "loses", "three")
    held = reply("One two three four five", hold_after=5)
    model.add(held)
    place = await conversation(alice)
    scheduler().start()
    began = asyncio.Event()
    loop = asyncio.get_running_loop()

    def watch() -> str:
        async def work() -> str:
            async with connected(alice) as page:
                await page.snapshot(place)
                await listened_to(redis_url, f"chat.{place}")
                loop.call_soon_threadsafe(began.set)
                queued = await page.until("turn_queued")
                while "five" not in page.text(queued["turn"]):
                    await page.until("text_delta")
                text = page.text(queued["turn"])
            await scheduler().close()
            return text

        return asyncio.run(work())

    watching = asyncio.ensure_future(asyncio.to_thread(watch))
    await asyncio.wait_for(began.wait(), PATIENCE)
    async with connected(alice) as page:
        queued = await page.say("Count", conversation=place)
        while page.text(queued["turn"]) != "One two three ":
            await page.until("text_delta")
        await scheduler().flush((await turn(queued["turn"])).conversation_id)
        held.release.set()
        await page.ended()
        await scheduler().idle()
    assert await watching == "One two three four five"


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
            await scheduler().schedule(conversation_id)
            await until(is_stopped)
            await scheduler().close()

        asyncio.run(work())

    async def is_stopped() -> bool:
        return (await turn(queued["turn"])).state == "stopped"

    async with connected(alice) as page:
        queued = await page.say("Count", conversation=place)
        await page.until("text_delta")
        await listened_to(redis_url, runner.CONVERSATIONS)
        await asyncio.to_thread(stop)
        end = await page.ended()
        held.release.set()
        await scheduler().idle()
    assert end["type"] == "turn_stopped"


async def test_without_redis_a_page_opens_and_sees_another_process_by_its_rows(
    alice: User, model: AnthropicServer, settings: Settings
) -> None:
    settings.CHANNEL_LAYERS = layers(f"redis://127.0.0.1:{free_port()}/0")
    model.add(reply("By the rows."))
    async with connected(alice) as page:
        sent = await page.say("Hi")
        assert (await page.ended())["text"] == "By the rows."
    async with connected(alice) as other:
        shown = await other.snapshot(sent["conversation"])
        assert shown["messages"][-1]["text"] == "By the rows."
