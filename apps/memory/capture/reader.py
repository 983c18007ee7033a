"""Reading windows: gate, extractor, notes. Asynchronous: while a model thinks nothing else waits."""

import asyncio
import logging
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils import timezone

from apps.accounts.selectors import user_time_zone
from apps.agent.model.client import ModelError, Usage, current_endpoint
from apps.core.db.pool import in_db
from apps.core.jobs.fair import AT_ONCE, users_by_turns
from apps.core.jobs.leases import LeaseLost
from apps.core.jobs.worker import Background
from apps.core.log_ids import log_ids
from apps.memory.models import CaptureLease, CaptureWindow, GateVerdict, Trust, WindowState

from . import calls, leases, occasions
from .candidates import notes_for
from .items import CaptureCounts, checked_items
from .leases import LeasedWindow, tokens_of
from .writing import items_apply

logger = logging.getLogger(__name__)

SWEEP_EVERY = timedelta(seconds=2)
IN_A_ROW = 5
"""Windows of one user before it is another's turn."""


@dataclass(slots=True)
class Tally(CaptureCounts):
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


async def user_read(
    user_id: UUID, tally: Tally, *, any_time: bool = False, most: int | None = None
) -> None:
    """Reads a user's windows that are due, one after the other, at `most` so many; with `any_time` also those that are
    not due yet.

    Ends early where somebody else reads them already, where the day's tokens are spent, and where the model's
    server is at fault.
    """
    tried: set[UUID] = set()
    async with leases.user_held(user_id) as held:
        while held and tally.server_down_for is None and (most is None or len(tried) < most):
            window = await in_db(leases.window_next, user_id, any_time=any_time, tried=frozenset(tried))
            if window is None:
                return
            tried.add(window.id)
            await _WindowReader(window, tally).run()


@dataclass(slots=True)
class _WindowReader:
    """One window, from the gate to its notes."""

    window: LeasedWindow
    tally: Tally
    usage: Usage = field(default_factory=Usage)

    async def run(self) -> None:
        self.tally.windows += 1
        with log_ids(user=self.window.user_id, conversation=self.window.conversation_id):
            await self._run()

    async def _run(self) -> None:
        try:
            await self._read()
        except ModelError as error:
            await self._failed(error.code, error.message, retry_after=error.retry_after)
        except LeaseLost:
            raise
        except (
            Exception
        ) as error:  # one window that cannot be read must not keep the others from being read
            logger.exception("window %s could not be read", self.window.id)
            await self._failed(
                "internal_error", f"Something went wrong inside Izzy ({type(error).__name__})."
            )
        self.tally.tokens += tokens_of(self.usage)
        self.tally.cost_usd += self.usage.cost_usd

    async def _read(self) -> None:
        window, tally = self.window, self.tally
        if await in_db(_read_before, window):
            await in_db(leases.gate_store, window, GateVerdict.REPEATED)
            tally.repeated += 1
            return
        zone = await in_db(user_time_zone, window.user_id)
        passage = calls.passage(window.segments, timezone.now(), zone)
        if window.gate != GateVerdict.PASSED:
            worth, reason, usage = await calls.judged(window, passage)
            self.usage += usage
            verdict = GateVerdict.PASSED if worth else GateVerdict.IDLE
            stored = await in_db(leases.gate_store, window, verdict, reason, usage)
            tally.idle += stored and not worth
            if not worth or not stored:
                return
        tally.passed += 1
        await self._extract(passage, zone)

    async def _extract(self, passage: str, zone: ZoneInfo) -> None:
        window = self.window
        notes = await in_db(notes_for, window)
        given, usage = await calls.extracted(window, passage, notes, zone)
        self.usage += usage
        items, dropped = checked_items(
            given or [], segments=len(window.segments), notes={note.pk for note in notes}, zone=zone
        )
        for reason in dropped:
            logger.info("window %s: an item was dropped: %s %s", window.id, reason.code, reason.detail)
        if given is None or (dropped and not items):
            # An answer of which nothing can be used is no answer: the words are kept.
            message = f"The model gave no answer that Izzy can {'read' if given is None else 'use'}."
            await self._failed("bad_items", message, usage=usage)
            return
        tainted = window.tainted or any(note.trust == Trust.UNTRUSTED for note in notes)
        counts = await in_db(items_apply, replace(window, tainted=tainted), items, dropped, usage)
        if counts is not None:
            self.tally.add(counts)

    async def _failed(self, code: str, message: str, **more: Any) -> None:
        server = code in leases.SERVER_FAULTS
        delay = await in_db(
            leases.window_failed, self.window, code=code, message=message, server=server, **more
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

    if not (await in_db(current_endpoint)).is_offline:
        await users_by_turns(due, lambda user_id: user_read(user_id, tally, most=IN_A_ROW))
    return tally


def read_due() -> timedelta | None:
    """Reads all that is due, and then has the model say of notes when they matter; after the server's fault, for how long
    to leave it alone."""
    rest = asyncio.run(windows_read()).server_down_for
    if rest is None:
        asyncio.run(occasions.notes_asked())
    return rest


reader = Background("reading conversations", read_due)


def sweep() -> None:
    """The worker's sweep: starts the reader where a window or a note is due and a model is connected."""
    now = timezone.now()
    due = leases.users_due(now, limit=1) or occasions.users_due(now, limit=1)
    if due and not current_endpoint().is_offline:
        CaptureLease.release_at_exit()
        reader.start()
