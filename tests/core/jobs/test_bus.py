"""Word between processes: each bus here is one."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from apps.core.jobs import bus as buses
from apps.core.jobs.bus import Bus, Signal
from tests.peers.ports import free_port
from tests.peers.redis_server import layers, redis_on
from tests.waiting import PATIENCE, until


@pytest.fixture
def made() -> Iterator[Callable[[str], Bus]]:
    """Makes a bus with a name, which is closed in the end."""
    found: list[Bus] = []

    def make(name: str) -> Bus:
        found.append(Bus(name))
        return found[-1]

    yield make
    for each in found:
        each.close()


@pytest.fixture
def over_redis(redis_url: str, settings: Settings) -> None:
    settings.CHANNEL_LAYERS = layers(redis_url)


async def connected(here: Bus, there: Bus, topic: str) -> None:
    """Until what one says on the topic reaches the other."""
    heard = asyncio.Event()
    end = there.listen(topic, lambda item: heard.set())

    async def is_heard() -> bool:
        here.send(topic, "hello")
        return heard.is_set()

    await until(is_heard)
    end()


async def listening(here: Bus, there: Bus, topic: str) -> list[Any]:
    """Collects what comes on the topic from now on, and is no greeting."""
    heard: list[Any] = []
    there.listen(topic, lambda item: heard.append(item) if item != "hello" else None)
    await connected(here, there, topic)
    return heard


async def test_without_redis_word_reaches_this_process_alone(made: Callable[[str], Bus]) -> None:
    one, two = made("one"), made("two")
    here: list[Any] = []
    elsewhere: list[Any] = []
    one.listen("news", here.append)
    two.listen("news", elsewhere.append)
    await asyncio.to_thread(one.publish, "news", ["from a thread"])
    one.publish("other news", 1)
    one.send("news", "for others alone")
    await until(lambda: here)
    await asyncio.sleep(0)
    assert (here, elsewhere) == ([["from a thread"]], [])


@pytest.mark.usefixtures("over_redis")
async def test_word_reaches_other_processes_in_its_order_and_no_process_hears_itself_twice(
    made: Callable[[str], Bus],
) -> None:
    one, two = made("one"), made("two")
    heard = await listening(one, two, "news")
    own: list[Any] = []
    one.listen("news", own.append)
    one.listen("last", own.append)
    for number in range(500):
        await asyncio.to_thread(one.publish, "news", {"number": number, "text": "ä \ud800"})
    await until(lambda: len(heard) == 500)
    assert [item["number"] for item in heard] == list(range(500))
    assert heard[0]["text"] == "ä \ud800"
    assert len(own) == 500


@pytest.mark.usefixtures("over_redis")
async def test_what_waits_for_redis_goes_together(
    made: Callable[[str], Bus], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = made("one"), made("two")
    heard = await listening(one, two, "news")
    messages = []
    handed = two.hand_out

    def hand_out(topic: str, items: Any) -> None:
        messages.append(items)
        handed(topic, items)

    monkeypatch.setattr(two, "hand_out", hand_out)
    for number in range(300):
        one.send("news", number)
    await until(lambda: len(heard) == 300)
    assert heard == list(range(300))
    assert len(messages) < 300


async def test_who_has_stopped_listening_hears_not_even_what_was_under_way(
    made: Callable[[str], Bus],
) -> None:
    bus = made("one")
    heard: list[Any] = []
    end = bus.listen("news", heard.append)
    bus.publish("news", "under way")
    end()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert heard == []


@pytest.mark.usefixtures("over_redis")
async def test_who_has_stopped_listening_hears_no_more(made: Callable[[str], Bus]) -> None:
    one, two = made("one"), made("two")
    first: list[Any] = []
    end = two.listen("news", first.append)
    heard = await listening(one, two, "news")
    end()
    end()
    before = len(first)
    one.send("news", "later")
    await until(lambda: heard)
    assert len(first) == before


async def test_a_redis_that_comes_later_is_found(
    made: Callable[[str], Bus], settings: Settings, tmp_path: Path
) -> None:
    port = free_port()
    settings.CHANNEL_LAYERS = layers(f"redis://127.0.0.1:{port}/0")
    one, two = made("one"), made("two")
    early = two.listen("news", lambda item: None)
    one.send("news", "lost")
    with redis_on(port, tmp_path):
        await connected(one, two, "news")
        await connected(one, two, "other news")
    early()


async def test_more_than_redis_takes_is_dropped(
    made: Callable[[str], Bus], settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: Any
) -> None:
    settings.CHANNEL_LAYERS = layers(f"redis://127.0.0.1:{free_port()}/0")
    monkeypatch.setattr(buses, "OUTBOX", 2)
    one = made("one")
    for number in range(100):
        one.send("news", number)
    await until(lambda: "is dropped: Redis does not keep up" in caplog.text)


async def test_a_signal_is_set_by_what_fits(
    made: Callable[[str], Bus], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = made("one")
    monkeypatch.setattr(buses, "bus", lambda: one)
    signal = Signal("news", lambda item: item == "fits")
    one.publish("news", "does not")
    assert not await signal.wait(0.05)
    await asyncio.to_thread(one.publish, "news", "fits")
    assert await signal.wait(PATIENCE)
    assert not await signal.wait(0.01)
    signal.set()
    assert await signal.wait(PATIENCE)
    signal.close()
    one.publish("news", "fits")
    assert not await signal.wait(0.05)
