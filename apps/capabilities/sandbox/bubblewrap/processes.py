"""Reads sandboxes' processes from /proc (whatever has gone meanwhile counts as nothing), makes them nicer, and ends those
beyond their limits: a thread looks at every sandbox of this process every 50 ms.

A thread and not a task: a busy event loop must not give a tool time. It also starts the sandboxes' processes, since they
die with the thread that started them (PR_SET_PDEATHSIG), and this one lives as long as the server.
"""

import contextlib
import logging
import os
import queue
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

from ..base import ErrorCode, Limits, RunError

PRIVATE_FIELDS = ("RssAnon:", "VmSwap:", "VmPTE:")
MAPPINGS_MOST = 16_000
MAPPING_BYTES = 256  # measured 190 on Linux 6.18
SOCKET_BYTES = 262_144  # of one: the default limit of its buffers (net.core.wmem_default), rounded up
SOCKETS_FREE = 32  # not counted; ordinary programs have fewer


class ProcessTable:
    """Finds descendants. A process known not to belong to a sandbox (`foreign`) is not read again for ANEW looks: so a look
    costs little more than listing /proc."""

    ANEW = 20

    def __init__(self) -> None:
        self.foreign: set[int] = set()
        self._looks = 0

    def look(self, roots: Iterable[int]) -> dict[int, list[int]]:
        """By root all processes beneath, parents first. An orphan belongs to its namespace's first process."""
        self._looks += 1
        if self._looks % self.ANEW == 0:
            self.foreign.clear()
        try:
            listed = {int(name) for name in os.listdir("/proc") if name.isdigit()}
        except OSError:
            listed = set()
        children: dict[int, list[int]] = {}
        for pid in listed - self.foreign:
            children.setdefault(parent(pid), []).append(pid)
        found: dict[int, list[int]] = {}
        for root in roots:
            found[root] = beneath = list(children.get(root, ()))
            for child in beneath:  # grows while it is walked
                beneath += children.get(child, ())
        self.foreign = listed.difference(*found.values())
        return found


def descendants(pid: int) -> list[int]:
    """By a fresh look at all processes: some milliseconds."""
    return ProcessTable().look([pid])[pid]


def parent(pid: int) -> int:
    """0 where it is gone."""
    # The name in parentheses may itself hold any character.
    return int((_text(f"/proc/{pid}/stat").rpartition(")")[2].split() or ["0", "0"])[1])


def memory_bytes(pid: int, fields: tuple[str, ...] = PRIVATE_FIELDS, file: str = "status") -> int:
    """The sum of these fields of one of its files. As it is called without: memory that is no file's and that the process has
    for itself, which is what it touched, resident or swapped out, and its page tables, which reading alone fills. Copies
    shared with a parent count."""
    lines = _text(f"/proc/{pid}/{file}").splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith(fields)) * 1024


def proportional_bytes(pid: int) -> int:
    """The same with shared pages divided among those who share them; slow, since the kernel walks the page tables."""
    shared = memory_bytes(pid, ("Pss_Anon:", "SwapPss:"), "smaps_rollup")
    return shared + memory_bytes(pid, ("VmPTE:",)) if shared else memory_bytes(pid)


def mappings(pid: int) -> int:
    """How many pieces its address space has, each of which the kernel describes in memory of its own. Counting ends above
    `MAPPINGS_MOST`."""
    try:
        with open(f"/proc/{pid}/maps", "rb") as file:
            return sum(1 for _ in islice(file, MAPPINGS_MOST + 1))
    except OSError:
        return 0


def socket_bytes(pid: int) -> int:
    """Bytes the sockets in its network namespace may hold, which no process's memory shows: the size of their buffers,
    and of TCP, whose buffers grow, what is queued."""
    used = tcp = 0
    for line in _text(f"/proc/{pid}/net/sockstat").splitlines():
        words = line.split()
        if words[0] == "sockets:":
            used = int(words[2])
        elif words[0] == "TCP:":
            tcp = int(words[2])
    queued = 0
    for name in ("tcp", "tcp6") if tcp > SOCKETS_FREE else ():
        for line in _text(f"/proc/{pid}/net/{name}").splitlines()[1:]:
            sent, _, received = line.split()[4].partition(":")
            queued += int(sent, 16) + int(received, 16)
    return max(0, used - SOCKETS_FREE) * SOCKET_BYTES + 3 * queued


def inodes(pid: int) -> int:
    """Files in the writable folders of its mount namespace."""
    used = 0
    for place in ("tmp", "home/user", "dev/shm"):
        try:
            found = os.statvfs(f"/proc/{pid}/root/{place}")
        except OSError:
            continue
        used += found.f_files - found.f_ffree
    return used


def inner_pid(pid: int) -> int:
    """Its number within its innermost namespace; 0 where it is gone."""
    for line in _text(f"/proc/{pid}/status").splitlines():
        if line.startswith("NSpid:"):
            return int(line.split()[-1])
    return 0


def _text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


STEP = 5
MOST = 19


def stand_back(pid: int, niceness: int) -> bool:
    """Makes the group that this process leads, and its session, so nice at least. False where the kernel wants to be asked
    again a little later: it lets others than root change ten sessions a second."""
    with contextlib.suppress(OSError):  # it has ended, or leads none
        if os.getpriority(os.PRIO_PGRP, pid) < niceness:
            os.setpriority(os.PRIO_PGRP, pid, niceness)
    try:
        with open(f"/proc/{pid}/autogroup", "r+b", buffering=0) as file:
            if int((file.read().split() or [b"0"])[-1]) < niceness:
                return file.write(str(niceness).encode()) is not None
    except OSError:
        pass  # it has ended, or this is a kernel without
    return True


logger = logging.getLogger(__name__)

TICK_SECONDS = 0.05
SLOW_EVERY = 20
"""Looks between two at what changes slowly or costs more: the share of its sessions, which a tool may take back, and how
many pieces its memory is cut into."""
SHARING_FACTOR = 4
"""Above so many times the limit nobody asks which pages are shared."""
OVERHEAD_PROCESSES = 2
"""The runner and the kernel."""


@dataclass(eq=False)
class Watched:
    """A sandbox as the watchdog sees it. `init` is the first process of its namespaces, as the host numbers it; `on_breach`
    is called in the watchdog's thread and kills."""

    root: int
    limits: Limits
    on_breach: Callable[[RunError], None]
    niceness: int
    stands_back: bool = False
    looks: int = 0
    mapping_bytes: int = 0
    init: int = 0
    deadline: float = float("inf")

    def look(self, pids: list[int], now: float) -> None:
        """In the watchdog's thread, every `TICK_SECONDS`: the sandbox ends where a limit is broken."""
        self.looks += 1
        slow = self.looks % SLOW_EVERY == 0
        if slow or not self.stands_back:
            self.stands_back = all(stand_back(pid, self.niceness) for pid in (self.root, *pids))
        if slow:
            counts = [mappings(pid) for pid in pids]
            counted = max(counts, default=0) <= MAPPINGS_MOST  # else nobody counts further
            self.mapping_bytes = sum(counts) * MAPPING_BYTES if counted else self.limits.memory_bytes + 1
        limits = self.limits
        if now > self.deadline:
            message = f"It ran for more than {limits.wall_seconds:g} seconds."
            self.on_breach(RunError(ErrorCode.TIMED_OUT, message))
            return
        if len(pids) > limits.processes + OVERHEAD_PROCESSES:
            message = f"It started more than {limits.processes} processes."
            self.on_breach(RunError(ErrorCode.LIMIT_EXCEEDED, message))
            return
        used = sum(map(memory_bytes, pids))
        beside = self.mapping_bytes + (socket_bytes(self.init) if self.init else 0)
        if limits.memory_bytes < used + beside and used < SHARING_FACTOR * limits.memory_bytes:
            used = sum(map(proportional_bytes, pids))
        if used + beside > limits.memory_bytes:
            message = f"It used more than {limits.memory_bytes // 1_000_000} MB of memory."
            self.on_breach(RunError(ErrorCode.OUT_OF_MEMORY, message))
        elif self.init and inodes(self.init) > limits.files:
            message = f"It made more than {limits.files:,} files."
            self.on_breach(RunError(ErrorCode.LIMIT_EXCEEDED, message))


class Watchdog(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="sandbox watchdog", daemon=True)
        self.niceness = min(MOST, os.getpriority(os.PRIO_PROCESS, 0) + STEP)  # of the sandboxes
        self.watched: set[Watched] = set()
        self._work: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]]] = queue.SimpleQueue()
        self._table = ProcessTable()

    def call(self, function: Callable[[], Any]) -> "Future[Any]":
        """Run it in this thread, at once."""
        future: Future[Any] = Future()
        self._work.put((function, future))
        return future

    def run(self) -> None:
        """Does at once what it is asked to, and looks at the sandboxes, while there are any, every `TICK_SECONDS`."""
        due = 0.0
        while True:
            if not self.watched:  # nobody looks meanwhile, and numbers are given anew
                self._table.foreign.clear()
            with contextlib.suppress(queue.Empty):
                left = max(0.0, due - time.monotonic()) if self.watched else None
                function, future = self._work.get(timeout=left)
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(function())
                    except BaseException as error:  # noqa: BLE001  it belongs to whoever waits
                        future.set_exception(error)
            if not self.watched or (now := time.monotonic()) < due:
                continue
            due = now + TICK_SECONDS
            try:
                watched = list(self.watched)
                found = self._table.look(item.root for item in watched)
                for item in watched:
                    try:
                        item.look(found[item.root], now)
                    except Exception:  # whatever it is: the others must be looked at, and this one again
                        logger.exception("the sandbox watchdog stumbled over one")
            except Exception:  # without this thread nothing would be limited any more
                logger.exception("the sandbox watchdog stumbled")


@cache
def watchdog() -> Watchdog:
    """This process's one; started when first asked for."""
    thread = Watchdog()
    thread.start()
    return thread
