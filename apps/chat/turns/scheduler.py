"""The conversations that this process runs, the upkeep they share, and what begins and ends that with the server.

Everything here belongs to one event loop. From synchronous code (a REST view in its thread) call `schedule_soon`.
"""

import asyncio
import contextvars
from collections.abc import Callable, Collection, Coroutine
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary, WeakSet

from django.db import Error
from django.db.models import Q, QuerySet
from django.utils import timezone

from apps.agent.models import ToolCall
from apps.builder.builds.messages import BUILDS, messages_to_log
from apps.builder.models import Follower
from apps.chat.conversations.handover import conversation_left
from apps.chat.conversations.services import conversation_clear
from apps.chat.models import OPEN_STATES, Conversation, Turn, TurnStatus
from apps.chat.stream.hub import Hub
from apps.chat.turns.actor import Actor
from apps.chat.turns.queue import conversation_take
from apps.chat.turns.store import EventLog, logs_store
from apps.core.db.pool import in_db
from apps.core.db.prepared import prepared
from apps.core.db.troubles import log_failure
from apps.core.db.writing import users_of, writing_for
from apps.core.jobs.bus import bus

CONVERSATIONS = "conversations"
"""The topic of conversations that their process has to look at: their ids."""
AWAY_SECONDS = 20.0
"""How long a page may be away, for a reload or a lost connection, before its conversation counts as left."""
FLUSH_SECONDS = 0.2
FLUSH_EACH_SECONDS = 0.01
FLUSH_AT_MOST_SECONDS = 1.5
"""Events are stored every FLUSH_SECONDS; where many conversations have any, less often for each: with 100 once a second."""
LOOK_SECONDS = 0.6
RESCUE_SECONDS = 3.0
RESCUE_AGE = timedelta(seconds=2)


class Scheduler:
    """Actors by conversation, and one task that stores events, extends leases and looks for work."""

    def __init__(self) -> None:
        self.hub = Hub(
            lambda key: asyncio.get_running_loop().call_later(AWAY_SECONDS, self._page_away, key)
        )
        self._left: set[UUID] = set()  # closed while their turn ran: read when that is over
        self.actors: dict[UUID, Actor] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting: dict[UUID, asyncio.Task[None]] = {}
        self._upkeep: asyncio.Task[None] | None = None
        self._unlisten: list[Callable[[], None]] = []
        self._closed = self._draining = False

    def start(self) -> None:
        """Begins the upkeep; harmless when it runs already."""
        if self._upkeep is None or self._upkeep.done():
            # Not by `_background`: nobody waits for its end.
            loop = asyncio.get_running_loop()
            self._upkeep = loop.create_task(self._keep_up(), context=contextvars.Context())
            if not self._unlisten:
                self._unlisten = [
                    bus().listen(CONVERSATIONS, lambda item: self.notify(UUID(item))),
                    bus().listen(BUILDS, self._hear_of_build),
                ]

    def notify(self, conversation_id: UUID) -> None:
        if (actor := self.actors.get(conversation_id)) is not None:
            actor.news.set()

    async def schedule(self, conversation_id: UUID) -> None:
        """Has the conversation looked at now: here, unless another process runs it (that one is notified)."""
        if self._closed:
            return
        self.start()
        if conversation_id in self.actors:
            self.notify(conversation_id)
            return
        if self._draining:  # the next process, or this one's next start, finds it in the rows
            return
        if (starting := self._starting.get(conversation_id)) is not None:
            await asyncio.wait([starting])
            self.notify(conversation_id)  # it may have looked before what is asked for was there
            return
        starting = self._background(conversation_id, self._take_up(conversation_id))
        self._starting[conversation_id] = starting
        await asyncio.wait([starting])

    async def flush(self, conversation_id: UUID) -> None:
        """Stores what the conversation's turn has emitted so far, if it runs here."""
        if (actor := self.actors.get(conversation_id)) is not None:
            await actor.log.flush()

    async def drain(self, seconds: float) -> None:
        """Takes up no further conversation or turn, and returns when those under way have ended, or after so many seconds."""
        self._draining = True
        for actor in list(self.actors.values()):
            actor.finish()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    async def close(self, patience: float = 10.0) -> None:
        """Ends running turns as interrupted and stops; what is queued is left to the next start."""
        self._closed = True
        for actor in list(self.actors.values()):
            actor.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=patience)
        if self._upkeep is not None:
            self._upkeep.cancel()
        for unlisten in self._unlisten:
            unlisten()
        await self.hub.close()

    async def idle(self) -> None:
        """Waits until no conversation is run here."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def _page_away(self, conversation_id: UUID) -> None:
        if self._closed or self.hub.has_page(conversation_id):
            return
        if conversation_id in self.actors:
            self._left.add(conversation_id)
        else:
            self._background(conversation_id, in_db(conversation_left, conversation_id))

    def _hear_of_build(self, item: list[str]) -> None:
        """A build has news for its conversation."""
        if item[1]:
            conversation_id = UUID(item[1])
            self._background(conversation_id, self.schedule(conversation_id))

    async def _take_up(self, conversation_id: UUID) -> None:
        try:
            numbers = await in_db(conversation_take, conversation_id)
            if numbers is None:
                bus().send(CONVERSATIONS, str(conversation_id))
                return
            log = EventLog(conversation_id, numbers, self.hub.publish)
            actor = self.actors[conversation_id] = Actor(conversation_id, log)
            self.hub.local.add(conversation_id)
            self._background(conversation_id, self._run(actor, numbers.user_id))
        finally:
            del self._starting[conversation_id]

    def _background(
        self, conversation_id: UUID, work: Coroutine[Any, Any, None]
    ) -> "asyncio.Task[None]":
        """A task with an empty context: nothing of the request that happened to start it (its thread, its user)."""
        task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(partial(self._ended, conversation_id))
        return task

    def _ended(self, conversation_id: UUID, task: "asyncio.Task[None]") -> None:
        """Nobody asks a task how it ended; what it leaves undone, the upkeep finds in the rows."""
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log_failure(error, f"work on conversation {conversation_id} failed")

    async def _run(self, actor: Actor, user_id: UUID) -> None:
        try:
            with writing_for(user_id):
                await actor.run()
                if actor.lost:
                    await in_db(conversation_clear, user_id, actor.conversation_id)
        finally:
            self.actors.pop(actor.conversation_id, None)
            self.hub.local.discard(actor.conversation_id)
            if actor.conversation_id in self._left:
                self._left.discard(actor.conversation_id)
                self._page_away(actor.conversation_id)
            if actor.log.given_back and actor.news.is_set():
                self._background(actor.conversation_id, self.schedule(actor.conversation_id))

    async def _keep_up(self) -> None:
        looked = rescued = 0.0
        while True:
            waiting = sum(bool(actor.log.pending) for actor in self.actors.values())
            pause = max(FLUSH_SECONDS, waiting * FLUSH_EACH_SECONDS)
            await asyncio.sleep(min(pause, FLUSH_AT_MOST_SECONDS))
            now = asyncio.get_running_loop().time()
            try:
                # The events of all conversations go in one transaction.
                for conversation_id in await logs_store([actor.log for actor in self.actors.values()]):
                    self.notify(conversation_id)
                if now - looked > LOOK_SECONDS:
                    looked = now
                    if self.actors:
                        for conversation_id in await in_db(
                            conversations_with_requests, list(self.actors)
                        ):
                            self.notify(conversation_id)
                    for conversation_id in await in_db(conversations_with_build_news):
                        await self.schedule(conversation_id)
                if now - rescued > RESCUE_SECONDS:
                    rescued = now
                    for conversation_id in await in_db(conversations_left):
                        await self.schedule(conversation_id)
            except Error as error:
                log_failure(error, "the upkeep of conversations failed; it goes on")


_schedulers: "WeakKeyDictionary[asyncio.AbstractEventLoop, Scheduler]" = WeakKeyDictionary()
_serving: asyncio.AbstractEventLoop | None = None


def scheduler() -> Scheduler:
    """The scheduler of the running event loop."""
    global _serving
    loop = asyncio.get_running_loop()
    if loop not in _schedulers:
        _schedulers[loop] = Scheduler()
        _serving = loop
    return _schedulers[loop]


def schedule_soon(conversation_id: UUID) -> None:
    """Has the conversation looked at now, from a thread. Without a serving event loop (a command, a test) the next sweep of a
    server does it."""
    if _serving is not None and _serving.is_running():
        asyncio.run_coroutine_threadsafe(_schedulers[_serving].schedule(conversation_id), _serving)


def conversations_with_requests(conversation_ids: Collection[UUID]) -> list[UUID]:
    """Those among them in which another process has queued or stopped something."""
    rows = Turn.objects.unscoped().filter(conversation_id__in=conversation_ids)
    requests = Q(announced=False) | Q(state__in=OPEN_STATES, stop_requested=True)
    return list(rows.filter(requests).order_by().values_list("conversation_id", flat=True).distinct())


def conversations_with_build_news() -> list[UUID]:
    """Conversations whose log lacks messages of builds; for one that was deleted they count as logged."""
    wanted = _wanted_by_builds()
    if not wanted:
        return []
    followers = Follower.objects.unscoped().filter(has_news=True).order_by()
    rows = Conversation.objects.unscoped().filter(id__in=wanted, deleted_at=None)
    there = set(rows.values_list("id", flat=True))
    for _, gone in users_of(followers.exclude(conversation_id__in=there)):
        for conversation_id in gone.values_list("conversation_id", flat=True).distinct():
            messages_to_log(conversation_id=conversation_id)
    return [conversation_id for conversation_id in wanted if conversation_id in there]


@prepared
def _wanted_by_builds() -> QuerySet[Follower, UUID]:
    followers = Follower.objects.unscoped().filter(has_news=True).order_by()
    return followers.values_list("conversation_id", flat=True).distinct()


def conversations_left() -> list[UUID]:
    """Conversations that nobody runs although there is something to do in them. A turn from the future is from before the
    clock was set back."""
    now = timezone.now()
    at_rest = Q(created_at__lt=now - RESCUE_AGE) | Q(created_at__gt=now)
    turns = Turn.objects.unscoped().filter(
        Conversation.lease_free("conversation__"), at_rest, state__in=OPEN_STATES
    )
    due = Q(state__in=[TurnStatus.QUEUED, TurnStatus.RUNNING]) | Q(stop_requested=True)
    found = set(turns.filter(due).values_list("conversation_id", flat=True))
    waiting = dict(turns.filter(state=TurnStatus.WAITING).values_list("id", "conversation_id"))
    if waiting:
        undecided = ToolCall.objects.unscoped().filter(
            turn_id__in=waiting, state=ToolCall.State.WAITING, decision=""
        )
        still = set(undecided.values_list("turn_id", flat=True))
        found |= {
            conversation_id for turn_id, conversation_id in waiting.items() if turn_id not in still
        }
    return list(found)


_started: "WeakSet[asyncio.AbstractEventLoop]" = WeakSet()


class WithRunner:
    """An ASGI application whose first request also starts the runner, so that what a crash left is taken up. When the server
    stops, running turns end as interrupted and their text is stored."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        loop = asyncio.get_running_loop()
        if loop not in _started and scope["type"] in {"http", "websocket"}:
            _started.add(loop)
            scheduler().start()

        async def until_it_stops() -> Any:
            message = await receive()
            if message["type"] == "lifespan.shutdown" and loop in _started:
                await scheduler().close()
            return message

        return await self.application(
            scope, until_it_stops if scope["type"] == "lifespan" else receive, send
        )
