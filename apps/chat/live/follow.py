"""One turn's events for a program: as a stream of server-sent events, or its end alone."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any
from uuid import UUID

from apps.agent.events import LAST_EVENTS
from apps.chat.live.feed import Subscription
from apps.chat.live.hub import Start
from apps.chat.log import events_of
from apps.chat.models import OPEN_STATES, Turn, TurnEvent
from apps.chat.reading import one_view
from apps.chat.runner.registry import registry
from apps.core.database import in_db
from apps.core.server_sent import server_sent

KEEP_ALIVE_SECONDS = 15.0


async def turn_frames(
    conversation_id: UUID, turn_id: UUID, after: int = 0
) -> AsyncGenerator[dict[str, Any] | None, None]:
    """The turn's events above `after` up to the one that ends its stream; None now and then while nothing happens.

    Has the turn run, too. Leaving early does not stop it.
    """
    runner, watcher = registry(), None
    try:
        while True:
            if watcher is None or watcher.lagged:  # What a reader that lags has missed stands in the rows.
                if watcher is not None:
                    runner.hub.leave(watcher)
                watcher = runner.hub.join(conversation_id, html=False)
                if not await _begun(watcher, turn_id, after):
                    return
            try:
                async with asyncio.timeout(KEEP_ALIVE_SECONDS):
                    frame = await watcher.next()
            except TimeoutError:
                yield None
                continue
            if frame.get("turn") not in {None, str(turn_id)}:
                continue
            after = max(after, frame.get("seq", 0))
            yield frame
            if frame["type"] in LAST_EVENTS:
                return
    finally:
        if watcher is not None:
            runner.hub.leave(watcher)


async def _begun(watcher: Subscription, turn_id: UUID, after: int) -> bool:
    """Lets the watcher begin above `after`, and the turn run; whether there is something to come."""
    runner = registry()
    await runner.flush(watcher.conversation_id)
    found = await in_db(_start, turn_id, after)
    if found is None:
        return False
    start, ended = found
    runner.hub.begin(watcher, start)
    if any(frame["type"] in LAST_EVENTS for frame in start.frames):
        return True
    await runner.schedule(watcher.conversation_id)
    return not ended


@one_view()
def _start(turn_id: UUID, after: int) -> tuple[Start, bool] | None:
    """The turn's stored events, and whether it has ended; None where its conversation was deleted meanwhile."""
    turn = Turn.objects.unscoped().select_related("conversation").filter(id=turn_id).first()
    if turn is None:
        return None
    conversation = turn.conversation
    rows = TurnEvent.objects.filter(turn_id=turn_id, last_seq__gt=after).order_by("seq")
    frames = [event.frame(conversation.id) for event in events_of(rows, after)]
    seq = max(after, conversation.stored_seq)
    return Start(frames, seq, None), turn.state not in OPEN_STATES


async def turn_stream(conversation_id: UUID, turn_id: UUID, after: int = 0) -> AsyncGenerator[bytes, None]:
    """The same as server-sent events: `event` repeats the type, `id` is the sequence number."""
    async with aclosing(turn_frames(conversation_id, turn_id, after)) as frames:
        async for frame in frames:
            yield b": still here\n\n" if frame is None else server_sent(frame, frame.get("seq"))


async def turn_end(conversation_id: UUID, turn_id: UUID, after: int = 0) -> dict[str, Any] | None:
    """The event that ends the turn's stream; None when the turn ended long ago and its events are gone."""
    async with aclosing(turn_frames(conversation_id, turn_id, after)) as frames:
        async for frame in frames:
            if frame is not None and frame["type"] in LAST_EVENTS:
                return frame
    return None
