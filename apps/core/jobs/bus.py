"""Word between the processes of one Izzy, over Redis where there is one.

Only a short cut: whatever does not arrive stands in the rows, and who waits for it looks at those now and then as well.
Without a layer that reaches other processes (no REDIS_URL) word reaches this process alone.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, TypeVar

from channels.layers import InMemoryChannelLayer, get_channel_layer

from apps.core.jobs.leases import PROCESS

logger = logging.getLogger(__name__)

T = TypeVar("T")

AWAY_SECONDS = 1.0
CLOSE_SECONDS = 5.0
OUTBOX = 10_000  # items; those beyond are dropped

Hear = Callable[[Any], object]


@dataclass(eq=False, slots=True)
class Listener:
    """Somebody in this process who waits for a topic's items."""

    loop: asyncio.AbstractEventLoop
    hear: Hear
    ended: bool = False

    def take(self, item: Any) -> None:
        """Hears the item, unless the listener ended while it was under way. Call it in the listener's loop."""
        if not self.ended:
            self.hear(item)


class Bus:
    """Topics that any thread of any process may say something on; an item is what JSON can hold. What was said on one topic
    arrives in that order, several items together where Redis does not keep up."""

    def __init__(self, process: str = PROCESS) -> None:
        self.process = process
        self._lock = threading.Lock()
        self._listeners: dict[str, list[Listener]] = {}
        self._wire: Wire | None = None

    def publish(self, topic: str, item: Any) -> None:
        """To everybody who listens, in this process as well."""
        self.hand_out(topic, [item])
        self.send(topic, item)

    def send(self, topic: str, item: Any) -> None:
        """To those who listen in other processes."""
        if (wire := self.wired()) is not None:
            call_in(wire.loop, partial(wire.put, topic, item))

    def listen(self, topic: str, hear: Hear) -> Callable[[], None]:
        """Has the running loop call `hear` with each item from now on; returns what ends that at once."""
        listener = Listener(asyncio.get_running_loop(), hear)
        with self._lock:
            self._listeners.setdefault(topic, []).append(listener)
        if (wire := self.wired()) is not None:
            call_in(wire.loop, wire.changed.set)
        return partial(self._unlisten, topic, listener)

    def topics(self) -> set[str]:
        """Topics this process listens to."""
        with self._lock:
            return set(self._listeners)

    def hand_out(self, topic: str, items: Iterable[Any]) -> None:
        """Tells those who listen in this process."""
        for listener in tuple(self._listeners.get(topic, ())):
            for item in items:
                call_in(listener.loop, partial(listener.take, item))

    def close(self) -> None:
        """Ends the connection; the next word or listener begins another."""
        with self._lock:
            wire, self._wire = self._wire, None
        if wire is not None:
            wire.stop()
            wire.join(CLOSE_SECONDS)

    def _unlisten(self, topic: str, listener: Listener) -> None:
        listener.ended = True
        with self._lock:
            listeners = self._listeners.get(topic, [])
            if listener in listeners:
                listeners.remove(listener)
            if not listeners:
                self._listeners.pop(topic, None)
        if (wire := self.wired()) is not None:
            call_in(wire.loop, wire.changed.set)

    def wired(self) -> "Wire | None":
        """The connection over the layer that is set now; None where that one lives in this process alone."""
        layer = get_channel_layer()
        if isinstance(layer, InMemoryChannelLayer):
            layer = None
        with self._lock:
            if self._wire is not None and self._wire.layer is not layer:
                self._wire.stop()
                self._wire = None
            if self._wire is None and layer is not None:
                self._wire = Wire(layer, self)
                self._wire.start()
            return self._wire


class Wire(threading.Thread):
    """The bus's connection: an event loop of its own, because word comes from many threads, while a layer's connection
    belongs to one loop."""

    def __init__(self, layer: Any, bus: Bus) -> None:
        super().__init__(name="bus", daemon=True)
        self.layer = layer
        self.loop = asyncio.new_event_loop()
        self.changed = asyncio.Event()  # the topics that are listened to
        self._bus = bus
        self._outbox: dict[str, list[Any]] = {}
        self._has_mail = asyncio.Event()
        self._work = [self.loop.create_task(work) for work in (self._deliver(), self._receive())]

    def run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner, suppress(asyncio.CancelledError):
            runner.run(self._until_stopped())

    def stop(self) -> None:
        for work in self._work:
            call_in(self.loop, work.cancel)

    def put(self, topic: str, item: Any) -> None:
        """Queues an item for the other processes. Call it in the wire's loop."""
        if sum(map(len, self._outbox.values())) >= OUTBOX:
            logger.warning("word for other processes is dropped: Redis does not keep up")
        else:
            self._outbox.setdefault(topic, []).append(item)
            self._has_mail.set()

    async def _until_stopped(self) -> None:
        await asyncio.gather(*self._work)

    async def _deliver(self) -> None:
        while True:
            await self._has_mail.wait()
            self._has_mail.clear()
            outbox, self._outbox = self._outbox, {}
            for topic, items in outbox.items():
                message = {"from": self._bus.process, "topic": topic, "items": json.dumps(items)}
                try:
                    await self.layer.group_send(topic, message)
                except redis_errors() as error:
                    logger.warning("Redis: %s", error)

    async def _receive(self) -> None:
        channel = await self._insist(self.layer.new_channel)
        following = asyncio.ensure_future(self._follow(channel))
        try:
            while True:
                message = await self._insist(partial(self.layer.receive, channel))
                if message["from"] != self._bus.process:
                    self._bus.hand_out(message["topic"], json.loads(message["items"]))
        finally:
            following.cancel()

    async def _follow(self, channel: str) -> None:
        """Keeps the layer's groups to the topics that are listened to."""
        joined: set[str] = set()
        while True:
            self.changed.clear()
            topics = self._bus.topics()
            for topic in topics - joined:
                await self._insist(partial(self.layer.group_add, topic, channel))
            for topic in joined - topics:
                await self._insist(partial(self.layer.group_discard, topic, channel))
            joined = topics
            await self.changed.wait()

    async def _insist(self, call: Callable[[], Awaitable[T]]) -> T:
        """The call's result, as soon as Redis answers."""
        while True:
            try:
                return await call()
            except redis_errors() as error:
                logger.warning("Redis: %s", error)
                await asyncio.sleep(AWAY_SECONDS)


class Signal:
    """An event of the running loop, which is set by the items of a topic that fit."""

    def __init__(self, topic: str, fits: Callable[[Any], bool] = lambda item: True) -> None:
        self._event = asyncio.Event()
        self._fits = fits
        self.close = bus().listen(topic, self._hear)

    async def wait(self, seconds: float) -> bool:
        """Whether it was set within that time, or since it was last waited for."""
        try:
            async with asyncio.timeout(seconds):
                await self._event.wait()
        except TimeoutError:
            return False
        self._event.clear()
        return True

    def set(self) -> None:
        """Ends the wait. Call it in the signal's loop."""
        self._event.set()

    def _hear(self, item: Any) -> None:
        if self._fits(item):
            self._event.set()


@cache
def bus() -> Bus:
    """The bus of this process."""
    return Bus()


def call_in(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Has the loop call it soon; nothing where the loop is closed."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)


@cache
def redis_errors() -> tuple[type[Exception], ...]:
    """Errors when Redis is away."""
    # Here and not above: the client takes a quarter of a second to import, and most run without it.
    from redis.exceptions import RedisError

    return OSError, RedisError
