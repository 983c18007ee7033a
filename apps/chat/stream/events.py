"""The event log: what happened in a turn, numbered per conversation, as rows, as the frames that clients get, and its text as HTML
blocks for those that show it."""

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Self
from uuid import UUID

from django.db import transaction
from django.db.models import Max, QuerySet
from django.utils import timezone

from apps.agent.turn.events import (
    LAST_EVENTS,
    ApprovalRequested,
    Event,
    Html,
    Question,
    TextDelta,
    ToolStart,
    TurnQueued,
    TurnStarted,
)
from apps.chat.conversations.links import Leads, directly
from apps.chat.conversations.markdown import LiveRenderer
from apps.chat.models import OPEN_STATES, Conversation, Turn, TurnEvent
from apps.core.db.writing import users_of
from apps.core.jobs.fair import one_by_one
from apps.core.text import canonical_json

TEXT = TextDelta.type
HTML = Html.type
MAX_TEXTS_PER_ROW = 500
KEEP_EVENTS = timedelta(days=2)
"""How long after its end a turn's events can be replayed; then its messages and tool calls are what is left."""
PRUNE_BATCH = 200
BLOCKS_PER_SEGMENT = 1000
PAUSE = 0.04
"""Seconds between two renderings of a block; ten times what one takes where that is more."""
COST = 0.0003
"""Seconds of the processor for a rendering, as long as none was measured."""
ENDS_SEGMENT = {ToolStart.type, Question.type, ApprovalRequested.type, *LAST_EVENTS}


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """An event with its place in a conversation's log, 0 before it has one; `payload` is its JSON without the common keys."""

    seq: int
    turn_id: UUID
    type: str
    payload: dict[str, Any]

    @classmethod
    def of(cls, turn_id: UUID, event: Event, **extra: Any) -> Self:
        """An event that is going to be logged; `extra` are fields that the chat adds."""
        return cls(0, turn_id, event.type, event.fields() | extra)

    def frame(self, conversation_id: UUID) -> dict[str, Any]:
        """The JSON object that goes over websocket and SSE."""
        return {
            "type": self.type,
            "conversation": str(conversation_id),
            "turn": str(self.turn_id),
            "seq": self.seq,
            **self.payload,
        }


def rows_of(conversation_id: UUID, events: Iterable[LoggedEvent]) -> list[TurnEvent]:
    """Unsaved rows for these events, neighbouring text deltas of one turn sharing a row."""
    runs: list[list[LoggedEvent]] = []
    for event in events:
        newest = runs[-1][-1] if runs and len(runs[-1]) < MAX_TEXTS_PER_ROW else None
        if (
            newest
            and newest.type == event.type == TEXT
            and (newest.turn_id, newest.seq + 1) == (event.turn_id, event.seq)
        ):
            runs[-1].append(event)
        else:
            runs.append([event])
    return [
        TurnEvent(
            conversation_id=conversation_id,
            turn_id=run[0].turn_id,
            seq=run[0].seq,
            last_seq=run[-1].seq,
            type=run[0].type,
            payload=canonical_json(
                {"texts": [event.payload["text"] for event in run]}
                if run[0].type == TEXT
                else run[0].payload
            ),
        )
        for run in runs
    ]


def events_of(rows: Iterable[TurnEvent], after: int = 0) -> list[LoggedEvent]:
    """The events in these rows whose number is above `after`, each as it was emitted."""
    events: list[LoggedEvent] = []
    for row in rows:
        payload = json.loads(row.payload)
        if row.type != TEXT:
            events.append(LoggedEvent(row.seq, row.turn_id, row.type, payload))
            continue
        events.extend(
            LoggedEvent(row.seq + index, row.turn_id, TEXT, {"text": text})
            for index, text in enumerate(payload["texts"])
        )
    return [event for event in events if event.seq > after]


def events_after(conversation_id: UUID, seq: int, *, limit: int) -> list[LoggedEvent]:
    """Stored events of the conversation above `seq`, oldest first, from at most `limit` rows."""
    rows = TurnEvent.objects.filter(conversation_id=conversation_id, last_seq__gt=seq).order_by("seq")[
        :limit
    ]
    return events_of(rows, seq)


def queued_event(conversation_id: UUID, turn_id: UUID) -> tuple[LoggedEvent | None, int]:
    """The stored `turn_queued` of the turn; where it is None, it will come after this number."""
    row = Conversation.objects.unscoped().filter(id=conversation_id)
    seq = row.values_list("stored_seq", flat=True).first() or 0  # first: it may be stored at any time
    events = events_of(TurnEvent.objects.filter(turn_id=turn_id, type=TurnQueued.type)[:1])
    return (events[0] if events else None), seq


def text_after(turn_id: UUID, seq: int) -> str:
    """The assistant's text that the turn's stored deltas above `seq` hold."""
    rows = TurnEvent.objects.filter(turn_id=turn_id, last_seq__gt=seq, type=TEXT).order_by("seq")
    return "".join(event.payload["text"] for event in events_of(rows, seq))


def events_prune() -> None:
    """Removes the events of turns that ended long ago.

    It starts from the turns that have events, which are those of some days, and not from all that ever ended.
    """
    one_by_one(_ended_long_ago(), _prune_own)


def _ended_long_ago() -> Iterator[tuple[UUID, QuerySet[Turn]]]:
    with_events = list(TurnEvent.objects.order_by().values_list("turn_id", flat=True).distinct())
    for start in range(0, len(with_events), PRUNE_BATCH):
        some = Turn.objects.unscoped().filter(id__in=with_events[start : start + PRUNE_BATCH])
        old = some.filter(ended_at__lt=timezone.now() - KEEP_EVENTS).exclude(state__in=OPEN_STATES)
        yield from users_of(old)


@transaction.atomic
def _prune_own(whose: tuple[UUID, QuerySet[Turn]]) -> None:
    _, old = whose
    events = TurnEvent.objects.filter(turn_id__in=list(old.values_list("id", flat=True)))
    newest = events.values_list("conversation_id").annotate(last=Max("last_seq")).order_by()
    for conversation_id, last in newest:
        rows = Conversation.objects.unscoped().filter(id=conversation_id, pruned_seq__lt=last)
        rows.update(pruned_seq=last)
    events.delete()


@dataclass(frozen=True, slots=True)
class LiveText:
    """The answer under way: the run of text (`segment`, from 0, counts those before it) not in a message yet."""

    turn_id: UUID
    segment: int
    text: str


@dataclass(slots=True)
class LiveHtml:
    """Follows one conversation's events and renders the newest run of text. It knows what the answer under way began with from
    a turn's start or from `prime`."""

    leads: Leads = directly  # where links lead from here on, and in the run of text under way
    pause: float = PAUSE
    cost: float = COST  # of the last rendering, in seconds of the processor
    _turn_id: UUID | None = None
    _segment: int = 0
    _seq: int = 0
    _renderer: LiveRenderer = field(default_factory=LiveRenderer)
    _ended: LiveRenderer | None = None  # of the run of text before

    def prime(self, live: LiveText | None, seq: int) -> None:
        """Takes up an answer in the middle: what of it a snapshot at `seq` shows counts as shown."""
        self._seq = seq
        self._renderer, self._ended = LiveRenderer(), None
        if live is not None:
            self._turn_id, self._segment = live.turn_id, live.segment
            if live.text:
                self._renderer.feed(live.text)
                self._renderer.render(self.leads)

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
            last: list[LoggedEvent] = []
            if shown:
                last = self._events(
                    [*self._renderer.render(self.leads), *self._renderer.finish(self.leads)]
                )
            self._renderer, self._ended = LiveRenderer(), self._renderer if shown else None
            self._segment += 1
            return last
        return []

    def render(self) -> list[LoggedEvent]:
        """The blocks that changed since the last time."""
        started = time.thread_time()
        changed = self._events(self._renderer.render(self.leads))
        self.cost = time.thread_time() - started
        self.pause = max(PAUSE, 10 * self.cost)
        return changed

    def render_again(self) -> list[LoggedEvent]:
        """The blocks of this run of text and the one before that change since it is known where links lead."""
        changed = self._events(self._renderer.relinked(self.leads))
        if self._ended is not None:
            return self._events(self._ended.relinked(self.leads), self._segment - 1) + changed
        return changed

    def _events(
        self, changed: Sequence[tuple[int, str]], segment: int | None = None
    ) -> list[LoggedEvent]:
        turn_id = self._turn_id
        if turn_id is None:
            return []
        first = (self._segment if segment is None else segment) * BLOCKS_PER_SEGMENT
        return [
            LoggedEvent(self._seq, turn_id, HTML, Html(first + index, html).fields())
            for index, html in dict(changed).items()
        ]


def with_html(events: Sequence[LoggedEvent], after: int, live: LiveHtml) -> list[LoggedEvent]:
    """Those of the events that are above `after`, with the HTML of the runs of text that go beyond it. `live` knows what was before
    all of them, so that the blocks get the numbers they had as they came."""
    out: list[LoggedEvent] = []
    fresh = False
    for event in events:
        out += live.take(event, shown=fresh)
        fresh = (fresh and event.type == TEXT) or (event.type == TEXT and event.seq > after)
        if event.seq > after:
            out.append(event)
    return out + (live.render() if fresh else [])
