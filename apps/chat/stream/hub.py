"""Everyone who watches conversations in this process, and where their events come from.

Three sources, all giving the same numbered events: turns that run in this process (at once), other processes over the bus
where there is Redis, and the rows of the log, looked at a few times a second and at once where events are missing.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from apps.chat.models import Conversation
from apps.chat.stream.events import LoggedEvent, events_after
from apps.chat.stream.feed import Feed, Subscription
from apps.chat.stream.snapshot import Start
from apps.core.db.pool import in_db
from apps.core.jobs.bus import bus

logger = logging.getLogger(__name__)
POLL_SECONDS = 0.3
POLL_ROWS = 1000


class Hub:
    """The feeds of this process. `page_closed` is called when the last page that shows a conversation has left it."""

    def __init__(self, page_closed: Callable[[UUID], object] = lambda _: None) -> None:
        self.page_closed = page_closed
        self.feeds: dict[UUID, Feed] = {}
        self._missing = asyncio.Event()
        self._poller: asyncio.Task[None] | None = None
        self.local: set[UUID] = set()

    def publish(self, conversation_id: UUID, previous: int, events: Sequence[LoggedEvent]) -> None:
        """Events of a turn that runs here, and the number of the one before them."""
        rows = [[event.seq, str(event.turn_id), event.type, event.payload] for event in events]
        bus().send(_topic(conversation_id), [previous, rows])
        self._take(conversation_id, previous, events)

    def join(self, conversation_id: UUID, *, html: bool) -> Subscription:
        """A subscription that buffers what happens from now on; call `begin` on it, and `leave` in the end."""
        feed = self.feeds.get(conversation_id)
        if feed is None:
            hear = partial(self._hear, conversation_id)
            feed = Feed(conversation_id, bus().listen(_topic(conversation_id), hear))
            self.feeds[conversation_id] = feed
        watcher = Subscription(conversation_id, html=html)
        feed.watchers.add(watcher)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.ensure_future(self._poll())
        return watcher

    def has_page(self, conversation_id: UUID) -> bool:
        """Whether a page shows the conversation, as far as this process knows."""
        feed = self.feeds.get(conversation_id)
        return feed is not None and any(watcher.html for watcher in feed.watchers)

    def leave(self, watcher: Subscription) -> None:
        feed = self.feeds.get(watcher.conversation_id)
        if feed is None:
            return
        feed.watchers.discard(watcher)
        if watcher.html and not self.has_page(watcher.conversation_id):
            self.page_closed(watcher.conversation_id)
        if not feed.watchers:
            feed.close()
            del self.feeds[watcher.conversation_id]

    def begin(self, watcher: Subscription, start: Start) -> None:
        """Lets the watcher begin with what its rows say."""
        if (feed := self.feeds.get(watcher.conversation_id)) is not None:
            feed.prime(start.live, start.seq)
        watcher.begin(start.frames, start.seq)

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()

    def _hear(
        self, conversation_id: UUID, item: tuple[int, list[tuple[int, str, str, dict[str, Any]]]]
    ) -> None:
        """Events of a turn that runs in another process."""
        previous, rows = item
        events = [LoggedEvent(seq, UUID(turn), kind, payload) for seq, turn, kind, payload in rows]
        self._take(conversation_id, previous, events)

    def _take(self, conversation_id: UUID, previous: int, events: Sequence[LoggedEvent]) -> None:
        if (feed := self.feeds.get(conversation_id)) is not None and feed.publish(events, previous):
            self._missing.set()

    async def _poll(self) -> None:
        while self.feeds:
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await self._missing.wait()
            self._missing.clear()
            known = {
                key: feed.last_seq
                for key, feed in self.feeds.items()
                if feed.last_seq is not None and (feed.is_behind or key not in self.local)
            }
            try:
                news = await in_db(_news, known) if known else {}
            except DatabaseError as error:
                logger.warning("could not look for events: %s", error)
                continue
            for conversation_id, events in news.items():
                if (feed := self.feeds.get(conversation_id)) is None:
                    continue
                if events is None:
                    feed.gone()
                else:
                    feed.publish(events)


def _topic(conversation_id: UUID) -> str:
    return f"chat.{conversation_id}"


def _news(known: dict[UUID, int]) -> dict[UUID, list[LoggedEvent] | None]:
    """Stored events above the known numbers, for conversations that have any; None for one that was deleted."""
    rows = Conversation.objects.unscoped().filter(id__in=known, deleted_at=None)
    stored = dict(rows.values_list("id", "stored_seq"))
    return {
        key: events_after(key, seq, limit=POLL_ROWS) if key in stored else None
        for key, seq in known.items()
        if stored.get(key, seq + 1) > seq
    }
