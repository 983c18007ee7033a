"""Changes of what MCP offers to a user, for the clients that want to know: one look a second at the rows of all of them, since
any process may have made the change."""

import asyncio
import hashlib
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import DatabaseError
from mcp.server.subscriptions import (
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from apps.capabilities.models import Capability, Status
from apps.core.db.pool import in_db
from apps.search.models import IndexOwner

from .resources import RECENT, resource_times

logger = logging.getLogger(__name__)

LOOK_SECONDS = 1.0

Listener = Callable[[ServerEvent], None]


@dataclass(frozen=True, slots=True)
class State:
    """The offer to one user's programs, as far as it is needed to see a change."""

    tools: str = ""  # a digest
    change: int = -1  # of the search index: notes and files are as they were while it is the same
    resources: dict[str, str] = field(default_factory=dict)  # when each was changed, by its address


def states(known: Mapping[UUID, State | None]) -> dict[UUID, State]:
    """The present states of these users, after the known ones. Synchronous; two queries where nothing changed."""
    active = Capability.objects.unscoped().filter(user_id__in=known, status=Status.ACTIVE)
    rows = active.order_by("name").values_list(
        "user_id", "name", "description", "current_id", "current__approved_at"
    )
    tools: dict[UUID, list[str]] = {}
    for user_id, *row in rows:
        tools.setdefault(user_id, []).append(repr(row))
    moved = IndexOwner.objects.filter(user_id__in=known).values_list("user_id", "change")
    changes = dict(moved)
    found = {}
    for user_id, before in known.items():
        change = changes.get(user_id, 0)
        same = before is not None and before.change == change
        found[user_id] = State(
            hashlib.sha256("\n".join(tools.get(user_id, [])).encode()).hexdigest(),
            change,
            before.resources if before is not None and same else resource_times(user_id),
        )
    return found


def events_between(before: State, after: State) -> Iterable[ServerEvent]:
    """The announcements that lead a client from one state to the other."""
    if before.tools != after.tools:
        yield ToolsListChanged()
    if before.resources.keys() != after.resources.keys():
        yield ResourcesListChanged()
    for uri, at in after.resources.items():
        if before.resources.get(uri, at) != at:
            yield ResourceUpdated(uri)
    if before.resources != after.resources:
        yield ResourceUpdated(RECENT)


class Changes:
    """Those of one event loop who listen, by user, and the task that looks while there are any."""

    def __init__(self) -> None:
        self._listeners: dict[UUID, set[Listener]] = {}
        self._known: dict[UUID, State] = {}
        self._task: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def heard(self, user_id: UUID, listener: Listener) -> AsyncIterator[None]:
        """Has `listener` called with each event of the user from now on, for as long as the block runs."""
        self._listeners.setdefault(user_id, set()).add(listener)
        try:
            if user_id not in self._known:
                found = await in_db(states, {user_id: None})
                self._known.setdefault(user_id, found[user_id])
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._look())
            yield
        finally:
            self._listeners[user_id].discard(listener)
            if not self._listeners[user_id]:
                del self._listeners[user_id]
                self._known.pop(user_id, None)

    async def _look(self) -> None:
        while self._listeners:
            try:
                self._compare(await in_db(states, dict(self._known)))
            except DatabaseError as error:
                logger.warning("could not see what has changed for MCP clients: %s", error)
            await asyncio.sleep(LOOK_SECONDS)

    def _compare(self, found: dict[UUID, State]) -> None:
        for user_id, state in found.items():
            before = self._known.get(user_id)
            if before is None:  # nobody listens any more
                continue
            self._known[user_id] = state
            for event in events_between(before, state):
                for listener in tuple(self._listeners[user_id]):
                    listener(event)


_all: "WeakKeyDictionary[asyncio.AbstractEventLoop, Changes]" = WeakKeyDictionary()


def changes() -> Changes:
    """The listeners of the running event loop."""
    return _all.setdefault(asyncio.get_running_loop(), Changes())
