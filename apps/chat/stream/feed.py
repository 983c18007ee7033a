"""One conversation as its watchers in this process see it, the answer under way as HTML blocks included."""

import asyncio
import logging
import time
from bisect import insort
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any
from uuid import UUID

from django.db import DatabaseError

from apps.agent.turn.events import LAST_EVENTS, ApprovalRequested, Html, Question, ToolStart, TurnStarted
from apps.chat.conversations.links import Leads, directly, links_now, through
from apps.chat.conversations.markdown import LiveRenderer
from apps.chat.stream.events import TEXT, LoggedEvent
from apps.core.db.pool import in_db
from apps.core.errors import NotFound

logger = logging.getLogger(__name__)
BLOCKS_PER_SEGMENT = 1000
PAUSE = 0.05
"""Seconds between two renderings of a block; ten times what one takes where that is more."""
ENDS_SEGMENT = {ToolStart.type, Question.type, ApprovalRequested.type, *LAST_EVENTS}
NAMES_LINKS = frozenset({"turn_started", "tool_result"})
AHEAD = 1000
"""Batches that are kept while events before them are missing; beyond that the rows will have them."""
QUEUE_FRAMES = 5000
"""A watcher that lags further behind loses its place and gets a snapshot instead."""
COALESCE_FRAMES = 20
"""So far behind a watcher lags, from where on what it has not read yet is put together."""
HTML = Html.type


@dataclass(frozen=True, slots=True)
class LiveText:
    """The answer under way: the run of text (`segment`, from 0, counts those before it) not in a message yet."""

    turn_id: UUID
    segment: int
    text: str


class LiveHtml:
    """Follows one conversation's events and renders the newest run of text. It knows what the answer under way began with from
    a turn's start or from `prime`. `leads` says where links lead.
    """

    def __init__(self, leads: Leads = directly) -> None:
        self.leads = leads
        self.pause = PAUSE
        self._turn_id: UUID | None = None
        self._segment = 0
        self._seq = 0
        self._renderer = LiveRenderer(self.leads)

    def lead(self, leads: Leads) -> None:
        """Lets links lead so from here on, and in the run of text under way."""
        self.leads = self._renderer.leads = leads

    def prime(self, live: LiveText | None, seq: int) -> None:
        """Takes up an answer in the middle: what of it a snapshot at `seq` shows counts as shown."""
        self._seq = seq
        self._renderer = LiveRenderer(self.leads)
        if live is not None:
            self._turn_id, self._segment = live.turn_id, live.segment
            self._renderer.feed(live.text)
            self._renderer.render()

    def take(self, event: LoggedEvent, *, shown: bool = True) -> list[LoggedEvent]:
        """The `html` events to send before this event; for text they are due later, from `render`.

        Where nobody is `shown` them, nothing is rendered.
        """
        if event.type == TurnStarted.type:
            self.prime(LiveText(event.turn_id, 0, ""), event.seq)
        if event.type == TEXT:
            self._turn_id, self._seq = event.turn_id, event.seq
            self._renderer.feed(event.payload["text"])
        elif event.type in ENDS_SEGMENT and not event.payload.get("server") and self._renderer.text:
            last = self._events([*self._renderer.render(), *self._renderer.finish()]) if shown else []
            self._renderer = LiveRenderer(self.leads)
            self._segment += 1
            return last
        return []

    def render(self) -> list[LoggedEvent]:
        """The blocks that changed since the last time."""
        started = time.perf_counter()
        changed = self._events(self._renderer.render())
        self.pause = max(PAUSE, 10 * (time.perf_counter() - started))
        return changed

    def _events(self, changed: Sequence[tuple[int, str]]) -> list[LoggedEvent]:
        turn_id = self._turn_id
        if turn_id is None:
            return []
        return [
            LoggedEvent(
                self._seq, turn_id, HTML, Html(self._segment * BLOCKS_PER_SEGMENT + index, html).fields()
            )
            for index, html in dict(changed).items()
        ]


def with_html(events: Sequence[LoggedEvent], after: int, leads: Leads = directly) -> list[LoggedEvent]:
    """A turn's events above `after`, with the HTML of the runs of text that go beyond it.

    `events` are all of one turn, so that its blocks get the numbers they had live.
    """
    live = LiveHtml(leads)
    if events:
        live.prime(LiveText(events[0].turn_id, 0, ""), 0)
    out: list[LoggedEvent] = []
    fresh = False
    for event in events:
        out += live.take(event, shown=fresh)
        fresh = (fresh and event.type == TEXT) or (event.type == TEXT and event.seq > after)
        if event.seq > after:
            out.append(event)
    return out + (live.render() if fresh else [])


@dataclass(slots=True)
class _Waiting:
    frame: dict[str, Any]
    texts: list[str]  # Of a frame of text: its own, and that of those which joined it.

    def joins(self, later: "_Waiting") -> bool:
        """Whether the later frame has become part of this one, which then has its number."""
        if not self.texts or not later.texts or self.frame["turn"] != later.frame["turn"]:
            return False
        self.frame = later.frame
        self.texts += later.texts
        return True


class Subscription:
    """One watcher's queue of frames. It buffers until `begin` says what the watcher knows already."""

    def __init__(self, conversation_id: UUID, *, html: bool) -> None:
        self.conversation_id = conversation_id
        self.html = html
        self.lagged = False
        self._after: int | None = None
        self._early: list[LoggedEvent] = []
        self._queue: deque[_Waiting] = deque()
        self._came = asyncio.Event()

    def put(self, event: LoggedEvent) -> None:
        if self._after is None:
            self._early.append(event)
        elif event.type == HTML or event.seq > self._after:
            self.put_frame(event.frame(self.conversation_id))

    def put_frame(self, frame: dict[str, Any]) -> None:
        """Queues a frame. For a watcher that lags, texts become one, and a block takes the place of its older self."""
        waiting = _Waiting(frame, [frame["text"]] if frame["type"] == TEXT else [])
        if len(self._queue) >= COALESCE_FRAMES:
            if frame["type"] == HTML:
                self._drop_older(frame)
            elif self._queue[-1].joins(waiting):
                return
        if len(self._queue) >= QUEUE_FRAMES:
            self.lagged = True
        else:
            self._queue.append(waiting)
        self._came.set()

    def _drop_older(self, frame: dict[str, Any]) -> None:
        for place in range(len(self._queue) - 1, len(self._queue) - COALESCE_FRAMES, -1):
            older = self._queue[place].frame
            if older["type"] == HTML and (older["turn"], older["block"]) == (frame["turn"], frame["block"]):
                del self._queue[place]
                if 0 < place < len(self._queue) and self._queue[place - 1].joins(self._queue[place]):
                    del self._queue[place]
                return

    def begin(self, frames: Sequence[dict[str, Any]], after: int) -> None:
        """Sends `frames`, then everything above `after`, what has come meanwhile included."""
        for frame in frames:
            self.put_frame(frame)
        self._after = after
        early, self._early = self._early, []
        for event in early:
            if event.seq > after:
                self.put(event)

    async def next(self) -> dict[str, Any]:
        """The next frame; waits for it."""
        while not self._queue:
            self._came.clear()
            await self._came.wait()
        waiting = self._queue.popleft()
        return waiting.frame | {"text": "".join(waiting.texts)} if waiting.texts else waiting.frame


class Feed:
    """The events of one conversation, passed on in their order to its watchers in this process."""

    def __init__(self, conversation_id: UUID, unlisten: Callable[[], None]) -> None:
        self.conversation_id = conversation_id
        self.last_seq: int | None = None  # of the newest event passed on; None before `prime`
        self._unlisten = unlisten
        self._ahead: list[tuple[int, Sequence[LoggedEvent]]] = []
        self.watchers: set[Subscription] = set()
        self._gone = False
        self._through = partial(through, conversation_id)
        self._html = LiveHtml(self._through)
        self._links: asyncio.Task[None] | None = None
        self._links_wanted, self._links_known = 1, 0
        self._rendering: asyncio.TimerHandle | None = None
        self._rendered_at = 0.0

    @property
    def is_behind(self) -> bool:
        """Whether events are kept here because some before them are missing."""
        return bool(self._ahead)

    def publish(self, events: Sequence[LoggedEvent], previous: int = 0) -> bool:
        """Passes on those events that are new here; where the event `previous` before them has not come yet, it keeps them until
        then. Returns whether something is missing from now on."""
        was_behind = self.is_behind
        insort(self._ahead, (previous, events), key=itemgetter(0))
        self._catch_up()
        if len(self._ahead) > AHEAD:
            self._ahead.clear()
        return self.is_behind and not was_behind

    def prime(self, live: LiveText | None, seq: int) -> None:
        """Says what was there before this feed began; later calls change nothing."""
        self._look_for_links()
        if self.last_seq is None:
            self.last_seq = seq
            self._html.prime(live, seq)
            self._catch_up()

    def _catch_up(self) -> None:
        while self.last_seq is not None and self._ahead and self._ahead[0][0] <= self.last_seq:
            for event in self._ahead.pop(0)[1]:
                if event.seq > self.last_seq:
                    self.last_seq = event.seq
                    self._pass_on(event)

    def _pass_on(self, event: LoggedEvent) -> None:
        self._send(self._html.take(event, shown=self._is_page_watching))
        for watcher in self.watchers:
            watcher.put(event)
        if event.type in NAMES_LINKS:
            self._links_wanted += 1
            self._html.lead(self._through)
            self._look_for_links()
        if event.type == TEXT:
            self._render_soon()

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

    @property
    def _is_page_watching(self) -> bool:
        return any(watcher.html for watcher in self.watchers)

    def _look_for_links(self) -> None:
        """Looks up which links may open directly, as what was read or said may change that; until then every link leads
        through our page."""
        behind = self._links_known != self._links_wanted and self._is_page_watching
        if behind and (self._links is None or self._links.done()):
            self._links = asyncio.ensure_future(self._know_links())

    async def _know_links(self) -> None:
        while self._links_known != (wanted := self._links_wanted):
            try:
                leads = await in_db(links_now, self.conversation_id)
            except DatabaseError as error:
                logger.warning("could not look up where links lead: %s", error)
                return
            self._links_known = wanted
            if leads is not None and wanted == self._links_wanted:
                self._html.lead(leads)

    def _send(self, events: Sequence[LoggedEvent]) -> None:
        for event in events:
            for watcher in self.watchers:
                if watcher.html:
                    watcher.put(event)

    def _render_soon(self) -> None:
        """Renders at once after a pause in the stream, else when the pause since the last time is over."""
        if self._rendering is not None or not self._is_page_watching:
            return
        loop = asyncio.get_running_loop()
        due = self._rendered_at + self._html.pause
        self._rendering = loop.call_at(max(due, loop.time()), self._render)

    def _render(self) -> None:
        self._rendering = None
        self._rendered_at = asyncio.get_running_loop().time()
        self._send(self._html.render())
