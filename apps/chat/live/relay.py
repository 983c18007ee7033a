"""Events between web processes through Redis.

Only a short cut: whatever does not arrive is found in the rows. Without Redis there is no relay, and other processes
look at the rows.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from channels.layers import InMemoryChannelLayer, get_channel_layer

from apps.chat.log import LoggedEvent
from apps.core.jobs.leases import PROCESS

logger = logging.getLogger(__name__)

NUDGES = "chat.nudges"
OUTBOX = 10_000

Receive = Callable[[UUID, int, Sequence[LoggedEvent]], None]


def new_relay(receive: Receive) -> "Relay | None":
    """A relay over the channel layer, unless that one lives in this process alone."""
    layer = get_channel_layer()
    if layer is None or isinstance(layer, InMemoryChannelLayer):
        return None
    return Relay(layer, receive)


class Relay:
    """Sends events of turns that run here, and hands in those of followed conversations from elsewhere.

    `nudged` is called with the id of a conversation in whose rows something changed.
    """

    def __init__(self, layer: Any, receive: Receive) -> None:
        self._layer = layer
        self._process = PROCESS
        self._receive = receive
        self._outbox: asyncio.Queue[tuple[str, dict[str, Any]]] = asyncio.Queue(OUTBOX)
        self._sent: dict[UUID, int] = {}
        self._changes: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        self.nudged: Callable[[UUID], None] | None = None
        self._tasks = [asyncio.ensure_future(work()) for work in (self._deliver, self._listen)]

    def send(self, conversation_id: UUID, events: Sequence[LoggedEvent]) -> None:
        """Queues events for the other processes."""
        payload = [[event.seq, str(event.turn_id), event.type, event.payload] for event in events]
        message = {
            "type": "chat.events",
            "from": self._process,
            "conversation": str(conversation_id),
            "previous": self._sent.get(conversation_id, 0),
            "events": json.dumps(payload),
        }
        self._sent[conversation_id] = events[-1].seq
        self._put(_group(conversation_id), message)

    def nudge(self, conversation_id: UUID) -> None:
        """Tells the process that runs the conversation to look at its rows."""
        self._put(NUDGES, {"type": "chat.nudge", "from": self._process, "conversation": str(conversation_id)})

    def follow(self, conversation_id: UUID) -> None:
        self._changes.put_nowait(("add", _group(conversation_id)))

    def unfollow(self, conversation_id: UUID) -> None:
        self._changes.put_nowait(("discard", _group(conversation_id)))

    def forget(self, conversation_id: UUID) -> None:
        """The conversation runs here no longer."""
        self._sent.pop(conversation_id, None)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _put(self, group: str, message: dict[str, Any]) -> None:
        try:
            self._outbox.put_nowait((group, message))
        except asyncio.QueueFull:
            logger.warning("events for other processes are dropped: Redis does not keep up")

    async def _deliver(self) -> None:
        while True:
            group, message = await self._outbox.get()
            await self._try(self._layer.group_send(group, message))

    async def _listen(self) -> None:
        while (channel := await self._try(self._join())) is None:  # noqa: ASYNC110  for Redis, not for a task
            await asyncio.sleep(1)
        follower = asyncio.ensure_future(self._follow(channel))
        try:
            while True:
                message = await self._try(self._layer.receive(channel))
                if message is None:
                    await asyncio.sleep(1)
                elif message["from"] != self._process:
                    self._take(message)
        finally:
            follower.cancel()

    async def _join(self) -> str:
        channel: str = await self._layer.new_channel()
        await self._layer.group_add(NUDGES, channel)
        return channel

    async def _follow(self, channel: str) -> None:
        while True:
            change, group = await self._changes.get()
            await self._try(getattr(self._layer, f"group_{change}")(group, channel))

    def _take(self, message: dict[str, Any]) -> None:
        conversation_id = UUID(message["conversation"])
        if message["type"] == "chat.nudge":
            if self.nudged is not None:
                self.nudged(conversation_id)
            return
        rows = json.loads(message["events"])
        events = [LoggedEvent(seq, UUID(turn), kind, payload) for seq, turn, kind, payload in rows]
        self._receive(conversation_id, message["previous"], events)

    async def _try(self, call: Any) -> Any:
        """The call's result, or None when Redis is away: the rows serve in its place."""
        # Here and not above: the client takes a quarter of a second to import, and most run without it.
        from redis.exceptions import RedisError

        try:
            return await call
        except (OSError, RedisError) as error:
            logger.warning("Redis: %s", error)
            return None


def _group(conversation_id: UUID) -> str:
    return f"chat.{conversation_id}"
