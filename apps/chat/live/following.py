"""The conversations that one socket follows."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

from apps.chat.live.feed import Subscription
from apps.chat.live.hub import Hub

MAX_SUBSCRIPTIONS = 8


class Following:
    """Subscriptions by conversation, each with a task that passes its frames on by `send`; of more than MAX_SUBSCRIPTIONS the
    one that was begun first ends. `lagging` is called for a client that lags too far behind."""

    def __init__(
        self,
        hub: Hub,
        send: Callable[[dict[str, Any]], Awaitable[None]],
        lagging: Callable[[], Awaitable[None]],
    ) -> None:
        self._hub = hub
        self._send = send
        self._lagging = lagging
        self._followed: dict[UUID, tuple[Subscription, asyncio.Task[None]]] = {}

    def __contains__(self, conversation_id: UUID) -> bool:
        return conversation_id in self._followed

    def join(self, conversation_id: UUID) -> Subscription:
        """A new subscription, in place of one there was; call `begin` of the hub on it."""
        self.leave(conversation_id)
        while len(self._followed) >= MAX_SUBSCRIPTIONS:
            self.leave(next(iter(self._followed)))
        watcher = self._hub.join(conversation_id, html=True)
        self._followed[conversation_id] = (watcher, asyncio.ensure_future(self._pass_on(watcher)))
        return watcher

    def leave(self, conversation_id: UUID) -> None:
        watcher, task = self._followed.pop(conversation_id, (None, None))
        if watcher is not None and task is not None:
            task.cancel()
            self._hub.leave(watcher)

    def leave_all(self) -> None:
        for conversation_id in list(self._followed):
            self.leave(conversation_id)

    async def _pass_on(self, watcher: Subscription) -> None:
        while not watcher.lagged:
            await self._send(await watcher.next())
        await self._lagging()
