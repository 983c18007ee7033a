"""Everyone who watches conversations in this process, and where their events come from.

Three sources, all giving the same numbered events: turns that run in this process (at once), other processes over the bus
where there is Redis, and the rows of the log, looked at a few times a second and at once where events are missing.
"""

import asyncio
import logging
from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.db import Error

from apps.chat.conversations.links import links_now, through
from apps.chat.conversations.markdown import may_link
from apps.chat.models import Conversation
from apps.chat.stream.events import TEXT, LiveHtml, LiveText, LoggedEvent, events_after, with_html
from apps.chat.stream.snapshot import Start
from apps.chat.stream.subscription import Subscription
from apps.core.db.pool import in_db
from apps.core.errors import NotFound
from apps.core.jobs.bus import bus


@dataclass(slots=True)
class Share:
    """Hands out times at which to begin, so that all work of one kind takes at most this share of a processor: while that is
    much more than there is to do, nobody waits."""

    share: float
    _free: float = 0.0

    def slot(self, earliest: float, seconds: float) -> float:
        """When work of so many seconds may begin, on the clock of `earliest`."""
        begin = max(earliest, self._free)
        self._free = begin + seconds / self.share
        return begin


RENDERING = Share(0.03)
"""Of the answers under way as HTML, in this process. A page shows their newest words as plain text until then."""
SENDING = 0.00015
"""Seconds that it takes to send on what was rendered."""


logger = logging.getLogger(__name__)
TOPIC = "chat.{}"
NAMES_LINKS = frozenset({"turn_started", "tool_result"})
AHEAD = 1000
"""Batches that are kept while events before them are missing; beyond that the rows will have them."""
KEPT = 1000
"""Events that are kept until the rows are known to have them, for who joins meanwhile."""
POLL_SECONDS = 0.3
POLL_ROWS = 1000


class Feed:
    """The events of one conversation, passed on in their order to its watchers in this process."""

    def __init__(self, conversation_id: UUID, unlisten: Callable[[], None]) -> None:
        self.conversation_id = conversation_id
        self.last_seq: int | None = None  # of the newest event passed on; None before `prime`
        self._unlisten = unlisten
        self.ahead: list[
            tuple[int, Sequence[LoggedEvent]]
        ] = []  # kept while some before them are missing
        self.kept: deque[LoggedEvent] = deque()  # passed on, and not known to be stored
        self.watchers: set[Subscription] = set()
        self.pages = 0  # of the watchers
        self._stored = 0  # all up to here stands in the rows before anybody reads them to begin
        self._needs = 0  # what of it who joins now has to find there
        self._gone = False
        self._html = LiveHtml(self._through)
        self._links: asyncio.Task[None] | None = None
        self._links_wanted, self._links_known = 1, 0
        self._link_met = False  # since it was last known where links lead
        self._rendering: asyncio.TimerHandle | None = None
        self._rendered_at = 0.0

    def join(self, watcher: Subscription) -> None:
        watcher.before, watcher.needs = tuple(self.kept), self._needs
        self.watchers.add(watcher)
        self.pages += watcher.html

    def publish(self, events: Sequence[LoggedEvent], previous: int = 0) -> bool:
        """Passes on those events that are new here; where the event `previous` before them has not come yet, it keeps them until
        then. Returns whether something is missing from now on."""
        was_behind = bool(self.ahead)
        insort(self.ahead, (previous, events), key=itemgetter(0))
        while self.last_seq is not None and self.ahead and self.ahead[0][0] <= self.last_seq:
            for event in self.ahead.pop(0)[1]:
                if event.seq > self.last_seq:
                    self.last_seq = event.seq
                    self._pass_on(event)
        if len(self.ahead) > AHEAD:
            self.ahead.clear()
        return bool(self.ahead) and not was_behind

    def prime(self, live: LiveText | None, seq: int) -> None:
        """Says what was there before this feed began; later calls change nothing."""
        if self.last_seq is None:
            self.last_seq = self._needs = seq
            for watcher in self.watchers:
                watcher.needs = seq
            self._html.prime(live, seq)
            self.publish([])  # what has come meanwhile
        if self._link_met:
            self._look_for_links()

    def stored(self, seq: int) -> None:
        """Says that all up to `seq` stands in the rows before anybody reads them to begin."""
        self._stored = max(self._stored, seq)
        while self.kept and self.kept[0].seq <= self._stored:
            self.kept.popleft()

    def missed(self, watcher: Subscription, start: Start) -> list[LoggedEvent] | None:
        """The events that the watcher gets between its start and what has come since it joined; None where neither its start nor what is kept
        goes far enough."""
        if start.stored < watcher.needs:
            return None
        ahead = [event for event in watcher.before if event.seq > start.stored]
        if not ahead or not watcher.html:
            return [event for event in ahead if event.seq > start.seq]
        live = LiveHtml(self._html.leads)
        live.prime(start.live, start.stored)
        return with_html(ahead, start.seq, live)

    def _keep(self, event: LoggedEvent) -> None:
        if event.seq > self._stored:
            self.kept.append(event)
        if len(self.kept) > KEPT:
            self._needs = self.kept.popleft().seq

    def _pass_on(self, event: LoggedEvent) -> None:
        self._keep(event)
        for each in (*self._html.take(event, shown=self.pages > 0), event):
            self._send(each)
        if event.type in NAMES_LINKS:
            self._links_wanted += 1
            self._html.leads = self._through
        if event.type != TEXT or not self.pages:
            return
        self._link_met = self._link_met or may_link(event.payload["text"])
        self._look_for_links()
        if self._rendering is None:
            # At once after a pause in the stream, else when the pause since the last rendering is over.
            loop = asyncio.get_running_loop()
            due = max(self._rendered_at + self._html.pause, loop.time())
            self._rendering = loop.call_at(RENDERING.slot(due, self._html.cost + SENDING), self._render)

    def _send(self, event: LoggedEvent) -> None:
        for watcher in self.watchers:
            watcher.put(event)

    def gone(self) -> None:
        """Sends the watchers an error, once: that the conversation was deleted."""
        if not self._gone:
            self._gone = True
            error = NotFound("This conversation was deleted.")
            for watcher in self.watchers:
                watcher.put_frame(
                    {"type": "error", "conversation": str(self.conversation_id), **error.to_json()}
                )

    def close(self) -> None:
        self._unlisten()
        if self._rendering is not None:
            self._rendering.cancel()
        if self._links is not None:
            self._links.cancel()

    def _through(self, url: str) -> str:
        """Where a link leads as long as it is not known whether it may open directly."""
        self._link_met = True
        return through(self.conversation_id, url)

    def _look_for_links(self) -> None:
        """Looks up which links may open directly, once there are any: what was read or said may change that."""
        behind = self._links_known != self._links_wanted and self._link_met and self.pages
        if behind and (self._links is None or self._links.done()):
            self._links = asyncio.ensure_future(self._know_links())

    async def _know_links(self) -> None:
        while self._links_known != (wanted := self._links_wanted):
            try:
                leads = await in_db(links_now, self.conversation_id)
            except Error as error:
                logger.warning("could not look up where links lead: %s", error)
                return
            self._links_known = wanted
            if leads is not None and wanted == self._links_wanted:
                self._html.leads, self._link_met = leads, False
                for block in self._html.render_again():
                    self._send(block)

    def _render(self) -> None:
        self._rendering = None
        self._rendered_at = asyncio.get_running_loop().time()
        for block in self._html.render():
            self._send(block)
        self._look_for_links()


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
        if bus().wired() is not None:
            rows = [[event.seq, str(event.turn_id), event.type, event.payload] for event in events]
            bus().send(TOPIC.format(conversation_id), [previous, rows])
        if (feed := self.feeds.get(conversation_id)) is not None:
            feed.stored(events[-1].seq)  # by `EventLog.flush`
            if feed.publish(events, previous):
                self._missing.set()

    def join(self, conversation_id: UUID, *, html: bool) -> Subscription:
        """A subscription that buffers what happens from now on; call `begin` on it, and `leave` in the end."""
        feed = self.feeds.get(conversation_id)
        if feed is None:
            hear = partial(self._hear, conversation_id)
            feed = Feed(conversation_id, bus().listen(TOPIC.format(conversation_id), hear))
            self.feeds[conversation_id] = feed
        watcher = Subscription(conversation_id, html=html)
        feed.join(watcher)
        if self._poller is None or self._poller.done():
            self._poller = asyncio.ensure_future(self._poll())
        return watcher

    def has_page(self, conversation_id: UUID) -> bool:
        """Whether a page shows the conversation, as far as this process knows."""
        feed = self.feeds.get(conversation_id)
        return feed is not None and feed.pages > 0

    def leave(self, watcher: Subscription) -> None:
        feed = self.feeds.get(watcher.conversation_id)
        if feed is None or watcher not in feed.watchers:
            return
        feed.watchers.discard(watcher)
        feed.pages -= watcher.html
        if watcher.html and not self.has_page(watcher.conversation_id):
            self.page_closed(watcher.conversation_id)
        if not feed.watchers:
            feed.close()
            del self.feeds[watcher.conversation_id]

    async def begin(self, watcher: Subscription, read: Callable[[], Start | None]) -> Start | None:
        """Lets the watcher begin with what its rows say, which `read` reads; where that is None it does not begin."""
        while True:
            start = await in_db(read)
            if start is None or self._begin(watcher, start):
                return start
            await asyncio.sleep(POLL_SECONDS)  # until the rows have what is not kept any more

    def _begin(self, watcher: Subscription, start: Start) -> bool:
        frames, seq = start.frames, start.seq
        if (feed := self.feeds.get(watcher.conversation_id)) is not None:
            feed.prime(start.live, start.stored)
            missed = feed.missed(watcher, start)
            if missed is None:
                return False
            if missed:
                frames = frames + [event.frame(watcher.conversation_id) for event in missed]
                seq = max(seq, missed[-1].seq)
        watcher.begin(frames, seq)
        return True

    async def close(self) -> None:
        if self._poller is not None:
            self._poller.cancel()

    def _hear(
        self, conversation_id: UUID, item: tuple[int, list[tuple[int, str, str, dict[str, Any]]]]
    ) -> None:
        """Events of a turn that runs in another process."""
        previous, rows = item
        events = [LoggedEvent(seq, UUID(turn), kind, payload) for seq, turn, kind, payload in rows]
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
                if feed.last_seq is not None and (feed.ahead or key not in self.local)
            }
            try:
                news = await in_db(_news, known) if known else {}
            except Error as error:
                logger.warning("could not look for events: %s", error)
                continue
            for conversation_id, found in news.items():
                if (feed := self.feeds.get(conversation_id)) is None:
                    continue
                if found is None:
                    feed.gone()
                else:
                    stored, events = found
                    feed.stored(stored)
                    feed.publish(events)


def _news(known: dict[UUID, int]) -> dict[UUID, tuple[int, list[LoggedEvent]] | None]:
    """Of each conversation the newest number stored, and the stored events above the known one; None where it was deleted."""
    rows = Conversation.objects.unscoped().filter(id__in=known, deleted_at=None)
    newest = dict(rows.values_list("id", "stored_seq"))

    def found(key: UUID, seq: int) -> tuple[int, list[LoggedEvent]] | None:
        if key not in newest:
            return None
        return newest[key], events_after(key, seq, limit=POLL_ROWS) if newest[key] > seq else []

    return {key: found(key, seq) for key, seq in known.items()}
