"""The builds of this process: claims them, keeps their leases, hands in what users say, and ends them."""

import asyncio
import logging
import threading
import time
from functools import partial
from uuid import UUID

from django.conf import settings
from django.db import Error, connections
from django.db.models import F

from apps.agent.model.client import ModelClient
from apps.builder.builds.ending import CANCELLED, YOU_CANCELLED
from apps.builder.builds.messages import BUILDS
from apps.builder.builds.running import builds_beat, builds_claim, builds_news, taken_end
from apps.builder.builds.selectors import builds_waiting
from apps.builder.models import Build
from apps.builder.runner.job import Job
from apps.core.db.pool import in_db
from apps.core.db.troubles import log_failure
from apps.core.db.writing import writing_for
from apps.core.jobs.bus import Signal
from apps.core.jobs.leases import PROCESS
from apps.core.log_ids import log_ids
from apps.core.traces import span

logger = logging.getLogger(__name__)

LOOK_SECONDS = 0.25
CLAIM_SECONDS = 0.5
BEAT_SECONDS = 3.0
CLOSE_SECONDS = 8.0
JOIN_SECONDS = 12.0
INTERNAL = "Something went wrong inside Izzy. The server's log says what."


class BuildPool:
    """Belongs to one event loop. `runner` is the name under which it holds leases."""

    def __init__(self, *, runner: str = PROCESS, client: ModelClient | None = None) -> None:
        self.runner = runner
        self.jobs: dict[UUID, Job] = {}
        self._client = client
        self._tasks: dict[UUID, asyncio.Task[None]] = {}
        self.news: Signal | None = None
        self._stopping = self._closing = False
        self._beaten = self._claimed = 0.0

    async def run(self) -> None:
        """Until `stop`; then its builds are given back for another process to go on with."""
        self.news = Signal(BUILDS)
        try:
            while not self._stopping:
                await self.look()
                if not self._stopping and await self.news.wait(LOOK_SECONDS):
                    self._claimed = 0.0
        finally:
            self.news.close()
            await self._close()

    def stop(self) -> None:
        self._stopping = True
        if self.news is not None:
            self.news.set()

    async def idle(self) -> None:
        """Works until nothing waits or runs any more."""
        while await in_db(builds_waiting) or self._tasks:
            await self.look()
            await asyncio.sleep(0.05)

    async def look(self) -> None:
        """One look at the rows. Whatever fails in it is tried again next time: no build would go on without this upkeep, in a
        worker that looks well."""
        try:
            await self._beat()
            await self._claim()
        except Exception as error:  # noqa: BLE001  it is logged
            log_failure(error, "the upkeep of builds failed; it goes on")

    async def _claim(self) -> None:
        free = settings.IZZY_BUILDS - len(self._tasks)
        if free <= 0 or time.monotonic() - self._claimed < CLAIM_SECONDS:
            return
        self._claimed = time.monotonic()
        if not await in_db(builds_waiting):
            return
        here = list(self._tasks)
        for build_id in await in_db(builds_claim, runner=self.runner, limit=free, but=here):
            self.jobs[build_id] = Job(build_id, client=self._client)
            task = self._tasks[build_id] = asyncio.ensure_future(self._work(build_id))
            task.add_done_callback(partial(self._done, build_id))

    async def _beat(self) -> None:
        ids = list(self._tasks)
        if not ids:
            return
        due = time.monotonic() - self._beaten > BEAT_SECONDS
        known = [key for job in self.jobs.values() for key in job.mailbox.delivered]
        if not due and not await in_db(builds_news, runner=self.runner, build_ids=ids, known=known):
            return
        stop, messages = await in_db(builds_beat, runner=self.runner, build_ids=ids)
        self._beaten = time.monotonic()
        for message in messages:
            if (job := self.jobs.get(message.build_id)) is not None:
                job.mailbox.deliver(message)
        for build_id in stop:
            if (task := self._tasks.get(build_id)) is not None:
                _end(task)

    async def _work(self, build_id: UUID) -> None:
        rows = Build.objects.unscoped().filter(pk=build_id).values_list("user_id", flat=True)
        with writing_for(await in_db(rows.first)), log_ids(build=build_id), span("build"):
            try:
                await self.jobs[build_id].run()
            except asyncio.CancelledError:
                if not self._closing:
                    await in_db(taken_end, build_id, self.runner, CANCELLED, YOU_CANCELLED)
            except Exception:
                logger.exception("build %s failed", build_id)
                await in_db(taken_end, build_id, self.runner, "internal_error", INTERNAL)

    def _done(self, build_id: UUID, task: "asyncio.Task[None]") -> None:
        self.jobs.pop(build_id, None)
        self._tasks.pop(build_id, None)
        if not task.cancelled():
            task.exception()

    async def _close(self) -> None:
        self._closing = True
        tasks = list(self._tasks.values())
        for task in tasks:
            _end(task)
        if tasks:
            await asyncio.wait(tasks, timeout=CLOSE_SECONDS)
        try:
            # Whoever takes them up next does so without this attempt counting.
            await in_db(Build.lease_release, None, self.runner, attempt=F("attempt") - 1)
        except Error:
            logger.exception("builds could not be given back; they are taken up when their leases end")


def _end(task: "asyncio.Task[None]") -> None:
    """Cancels it, once: it may take a moment to end its sandbox."""
    if not task.cancelling():
        task.cancel()


class BuildThread(threading.Thread):
    """The pool of the worker. Several builds at once, which mostly wait; sweeps go on in a thread of their own meanwhile."""

    def __init__(self) -> None:
        super().__init__(name="builds", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pool: BuildPool | None = None

    def run(self) -> None:
        try:
            asyncio.run(self._work())
        except Exception:
            logger.exception("the builds' thread ended")
        finally:
            connections.close_all()

    async def _work(self) -> None:
        self._loop, self._pool = asyncio.get_running_loop(), BuildPool()
        await self._pool.run()

    def stop(self) -> None:
        """Ends its builds' tasks and sandboxes and gives the builds back."""
        if self._loop is not None and self._pool is not None and self.is_alive():
            self._loop.call_soon_threadsafe(self._pool.stop)
            self.join(JOIN_SECONDS)
