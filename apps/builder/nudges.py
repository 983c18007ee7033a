"""Word of builds between processes through the channel layer: who waits for a build's rows looks at them at once.

Only a short cut: a nudge says that something changed, the rows say what. Without a layer that reaches other processes
(no REDIS_URL) nothing is sent, and who waits looks at the rows every now and then.
"""

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.db import transaction

logger = logging.getLogger(__name__)

GROUP = "builds"
AWAY_SECONDS = 1.0
CLOSE_SECONDS = 5.0

Listener = Callable[[UUID, UUID | None], None]
"""Called with the ids of a build and of its conversation, in the thread of the exchange: it must return at once."""


def nudge(*, build_id: UUID, conversation_id: UUID | None) -> None:
    """Tells all processes, once the transaction is committed, that there is something new of this build."""
    exchange = _exchange()
    if exchange is not None:
        transaction.on_commit(lambda: exchange.send(build_id, conversation_id))


def listen(listener: Listener) -> Callable[[], None]:
    """Has the listener called with each nudge from any process; returns what ends that."""
    exchange = _exchange()
    if exchange is None:
        return _nothing
    exchange.listeners.add(listener)
    return lambda: exchange.listeners.discard(listener)


class Bell:
    """An event of the running loop that nudges set: of one build, or of any (`build_id` None)."""

    def __init__(self, build_id: UUID | None = None) -> None:
        self._build_id = build_id
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()
        self.close = listen(self._hear)

    async def wait(self, seconds: float) -> bool:
        """Whether it rang within that time, or since it was last waited for."""
        try:
            async with asyncio.timeout(seconds):
                await self._rung.wait()
        except TimeoutError:
            return False
        self._rung.clear()
        return True

    def ring(self) -> None:
        """Ends the wait. Call it in the bell's loop."""
        self._rung.set()

    def _hear(self, build_id: UUID, _: UUID | None) -> None:
        if self._build_id in (None, build_id):
            call_in(self._loop, self.ring)


def call_in(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Has the loop call it soon; nothing where the loop is closed."""
    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        logger.debug("a listener's loop is closed")


class Exchange(threading.Thread):
    """This process's sender and receiver of nudges: an event loop of its own, because services are synchronous and run
    in many threads, while the layer's connection belongs to one loop."""

    def __init__(self, layer: Any) -> None:
        super().__init__(name="build-nudges", daemon=True)
        self.layer = layer
        self.listeners: set[Listener] = set()
        self._loop = asyncio.new_event_loop()
        self._sending: set[asyncio.Task[Any]] = set()
        self._receiving = self._loop.create_task(self._receive())

    def run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner, suppress(asyncio.CancelledError):
            runner.run(self._until_stopped())

    def stop(self) -> None:
        call_in(self._loop, self._receiving.cancel)

    def send(self, build_id: UUID, conversation_id: UUID | None) -> None:
        message = {
            "type": "builds.nudge",
            "build": str(build_id),
            "conversation": str(conversation_id) if conversation_id else "",
        }
        call_in(self._loop, partial(self._send, message))

    def _send(self, message: dict[str, str]) -> None:
        task = self._loop.create_task(self._try(lambda: self.layer.group_send(GROUP, message)))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    async def _until_stopped(self) -> None:
        await self._receiving

    async def _receive(self) -> None:
        while (channel := await self._try(self._join)) is None:  # noqa: ASYNC110  for Redis, not for a task
            await asyncio.sleep(AWAY_SECONDS)
        while True:
            message = await self._try(partial(self.layer.receive, channel))
            if message is None:
                await asyncio.sleep(AWAY_SECONDS)
                continue
            conversation = message["conversation"]
            for listener in list(self.listeners):
                listener(UUID(message["build"]), UUID(conversation) if conversation else None)

    async def _join(self) -> str:
        channel: str = await self.layer.new_channel()
        await self.layer.group_add(GROUP, channel)
        return channel

    async def _try(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """The call's result, or None when Redis is away: the rows serve in its place."""
        # Here and not above: the client takes a quarter of a second to import, and most run without it.
        from redis.exceptions import RedisError

        try:
            return await call()
        except (OSError, RedisError) as error:
            logger.warning("Redis: %s", error)
            return None


_lock = threading.Lock()
_current: Exchange | None = None


def _exchange() -> Exchange | None:
    """The exchange of this process over the layer that is set now; None where that one lives in this process alone."""
    global _current
    layer = get_channel_layer()
    if isinstance(layer, InMemoryChannelLayer):
        layer = None
    with _lock:
        if _current is not None and _current.layer is not layer:
            _current.stop()
            _current = None
        if _current is None and layer is not None:
            _current = Exchange(layer)
            _current.start()
        return _current


def _nothing() -> None:
    """There is nothing to end."""


def close() -> None:
    """Ends this process's exchange; the next nudge or listener begins another."""
    global _current
    with _lock:
        if _current is not None:
            _current.stop()
            _current.join(CLOSE_SECONDS)
        _current = None
