"""Reading windows: gate, extractor, notes. Asynchronous: while a model thinks nothing else waits."""

import asyncio
import atexit
import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import cache
from uuid import UUID

from django.db import Error as DatabaseFailure
from django.utils import timezone

from apps.accounts.selectors import user_time_zone
from apps.agent.model.client import ModelError, Usage
from apps.agent.model.endpoint import current_endpoint
from apps.core.db.pool import in_db
from apps.core.ids import parse_id
from apps.core.jobs.fair import AT_ONCE, users_by_turns
from apps.core.jobs.leases import LeaseLost
from apps.core.jobs.worker import Background
from apps.memory.models import CaptureLease, CaptureWindow, GateVerdict, Trust, WindowState

from . import calls, candidates, leases
from .items import Counts, Dropped, Item, Outcome, checked_items
from .leases import LeasedWindow, tokens_of
from .writing import window_apply

logger = logging.getLogger(__name__)

SERVER_FAULTS = frozenset(
    {
        "rate_limited",
        "overloaded",
        "model_unavailable",
        "model_auth",
        "model_billing",
        "model_forbidden",
        "model_not_found",
    }
)
"""Failures that say nothing about the window: it waits for the server as long as it takes."""


@dataclass(slots=True)
class Tally(Counts):
    """Counts over the windows that were read."""

    windows: int = 0
    passed: int = 0
    idle: int = 0
    repeated: int = 0
    failed: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    problems: list[str] = field(default_factory=list)
    server_down_for: timedelta | None = None


async def has_model() -> bool:
    """Whether a model is connected; the offline rules are none."""
    return not (await in_db(current_endpoint)).is_offline


async def user_read(user_id: UUID, tally: Tally, *, any_time: bool = False, most: int | None = None) -> None:
    """Reads a user's windows that are due, one after the other, at `most` so many; with `any_time` also those that are
    not due yet.

    Ends early where somebody else reads them already, where the day's tokens are spent, and where the model's
    server is at fault.
    """
    if not await in_db(leases.user_lease, user_id):
        return
    tried: set[UUID] = set()
    try:
        async with CaptureLease.lease_kept(user_id):
            while tally.server_down_for is None and (most is None or len(tried) < most):
                window = await in_db(leases.window_next, user_id, any_time=any_time, tried=frozenset(tried))
                if window is None:
                    return
                tried.add(window.id)
                await _Reading(window, tally).run()
    except LeaseLost:
        logger.warning("the windows of user %s are read by another process by now", user_id)
    finally:
        await asyncio.shield(in_db(CaptureLease.lease_release, user_id))


@dataclass(slots=True)
class _Reading:
    """One window, from the gate to its notes."""

    window: LeasedWindow
    tally: Tally
    usage: Usage = field(default_factory=Usage)

    async def run(self) -> None:
        self.tally.windows += 1
        try:
            await self._read()
        except ModelError as error:
            await self._failed(error.code, error.message, retry_after=error.retry_after)
        except LeaseLost:
            raise
        except Exception as error:  # one window that cannot be read must not keep the others from being read
            logger.exception("window %s could not be read", self.window.id)
            await self._failed(
                "internal_error", f"Something went wrong inside Izzy ({type(error).__name__})."
            )
        self.tally.tokens += tokens_of(self.usage)
        self.tally.cost_usd += self.usage.cost_usd

    async def _read(self) -> None:
        if await in_db(_read_before, self.window):
            await in_db(leases.window_close, self.window, GateVerdict.REPEATED)
            self.tally.repeated += 1
            return
        passage = calls.Passage(
            user_id=self.window.user_id,
            conversation_id=self.window.conversation_id,
            segments=self.window.segments,
            now=timezone.now(),
            zone=await in_db(user_time_zone, self.window.user_id),
        )
        if self.window.gate != GateVerdict.PASSED and not await self._passes(passage):
            return
        self.tally.passed += 1
        await self._extract(passage)

    async def _passes(self, passage: calls.Passage) -> bool:
        worth, reason, usage = await calls.judged(passage)
        self.usage += usage
        if not worth:
            closed = await in_db(leases.window_close, self.window, GateVerdict.IDLE, reason, usage)
            self.tally.idle += bool(closed)
            return False
        return await in_db(leases.gate_store, self.window, GateVerdict.PASSED, reason, usage)

    async def _extract(self, passage: calls.Passage) -> None:
        shown = [parse_id(key) for key, _ in self.window.shown if key]
        notes = await in_db(candidates.notes_for, self.window.user_id, self.window.segments, shown)
        given, usage = await calls.extracted(passage, notes)
        self.usage += usage
        if given is None:
            await in_db(leases.usage_add, self.window, usage)
            await self._failed("bad_items", "The model handed over no items that can be read.")
            return
        items, dropped = checked_items(
            given, segments=len(self.window.segments), notes={note.pk for note in notes}
        )
        for reason in dropped:
            logger.info("window %s: an item was dropped: %s %s", self.window.id, reason.code, reason.detail)
        if dropped and not items:  # an answer of which nothing can be used is no answer: the words are kept
            await in_db(leases.usage_add, self.window, usage)
            await self._failed("bad_items", "The model handed over no items that can be used.")
            return
        tainted = self.window.tainted or any(note.trust == Trust.UNTRUSTED for note in notes)
        window = replace(self.window, tainted=tainted)
        outcome = await in_db(_apply, window, items, dropped, usage)
        if outcome is not None:
            self.tally.count(outcome)

    async def _failed(self, code: str, message: str, *, retry_after: float | None = None) -> None:
        server = code in SERVER_FAULTS
        delay = await in_db(
            leases.window_failed,
            self.window,
            code=code,
            message=message,
            server=server,
            retry_after=retry_after,
        )
        self.tally.failed += 1
        self.tally.problems.append(message)
        logger.info("window %s was not read (%s); next try in %s", self.window.id, code, delay)
        if server:
            self.tally.server_down_for = delay or leases.SERVER_DELAY


def _read_before(window: LeasedWindow) -> bool:
    """Whether the same words were read before, in this conversation or in another copy of it."""
    if not window.fingerprint:
        return False
    rows = CaptureWindow.objects.for_user(window.user_id).filter(fingerprint=window.fingerprint)
    return rows.filter(state=WindowState.DONE).exclude(pk=window.id).exists()


def _apply(window: LeasedWindow, items: list[Item], dropped: list[Dropped], usage: Usage) -> Outcome | None:
    """Compares first, outside of the transaction (an embedder may take its time), then writes."""
    near = candidates.nearby(window.user_id, items)
    past = candidates.past_notes(window.user_id) if items else []
    shown = candidates.shown_texts(window.user_id, window.shown) if items else []
    return window_apply(window, items=items, near=near, past=past, shown=shown, dropped=dropped, usage=usage)


logger = logging.getLogger(__name__)

SWEEP_EVERY = timedelta(seconds=2)
IN_A_ROW = 5
"""Windows of one user before it is another's turn."""


async def users_read(users: list[UUID], *, any_time: bool = False) -> Tally:
    """Reads the windows of these users, AT_ONCE at a time; what came of it in all."""
    tally, room = Tally(), asyncio.Semaphore(AT_ONCE)

    async def one(user_id: UUID) -> None:
        async with room:
            await user_read(user_id, tally, any_time=any_time)

    await asyncio.gather(*(one(user_id) for user_id in users))
    return tally


async def windows_read() -> Tally:
    """Reads everything that is due, of all users, and what becomes due meanwhile; nothing without a model, and no more once its
    server is at fault. Users take turns, IN_A_ROW windows each."""
    tally = Tally()

    async def due() -> dict[UUID, UUID]:
        if tally.server_down_for is not None:
            return {}
        return {user_id: user_id for user_id in await in_db(leases.users_due, timezone.now())}

    if await has_model():
        await users_by_turns(due, lambda user_id: user_read(user_id, tally, most=IN_A_ROW))
    return tally


def read_due() -> timedelta | None:
    """Reads all that is due; after the server's fault, for how long to leave it alone."""
    return asyncio.run(windows_read()).server_down_for


reader = Background("reading conversations", read_due)


def sweep() -> None:
    """The worker's sweep: starts the reader where a window is due and a model is connected."""
    if leases.users_due(timezone.now(), limit=1) and not current_endpoint().is_offline:
        _release_at_exit()
        reader.start()


@cache
def _release_at_exit() -> None:
    """Once per process: an orderly end gives the windows under way to the next reader at once."""
    atexit.register(_release)


def _release() -> None:
    try:
        CaptureLease.lease_release()
    except DatabaseFailure:
        logger.warning("the leases of this process run out by themselves", exc_info=True)
