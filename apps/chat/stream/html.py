"""The answer under way as HTML blocks, for pages."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from apps.agent.turn.events import LAST_EVENTS, ApprovalRequested, Html, Question, ToolStart, TurnStarted
from apps.chat.conversations.links import Leads, directly
from apps.chat.conversations.markdown import LiveRenderer
from apps.chat.stream.events import TEXT, LoggedEvent

BLOCKS_PER_SEGMENT = 1000
PAUSE = 0.05
"""Seconds between two renderings of a block; ten times what one takes where that is more."""
ENDS_SEGMENT = {ToolStart.type, Question.type, ApprovalRequested.type, *LAST_EVENTS}


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
        newest = dict(changed)
        lines = [
            LoggedEvent.of(turn_id, Html(self._segment * BLOCKS_PER_SEGMENT + index, html))
            for index, html in newest.items()
        ]
        return [replace(line, seq=self._seq) for line in lines]


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
