"""Reads a sandbox's processes from /proc, and makes them nicer. Whatever has gone meanwhile counts as nothing."""

import contextlib
import os
from collections.abc import Iterable
from itertools import islice

PRIVATE_FIELDS = ("RssAnon:", "VmSwap:", "VmPTE:")
MAPPINGS_MOST = 16_000
MAPPING_BYTES = 256  # measured 190 on Linux 6.18
SOCKET_BYTES = 262_144  # of one: the default limit of its buffers (net.core.wmem_default), rounded up
SOCKETS_FREE = 32  # not counted; ordinary programs have fewer


class ProcessTable:
    """Finds descendants. A process known not to belong to a sandbox is not read again until `forget`, or for ANEW
    looks: so a look costs little more than listing /proc."""

    ANEW = 20

    def __init__(self) -> None:
        self._foreign: set[int] = set()
        self._looks = 0

    def forget(self) -> None:
        self._foreign = set()

    def look(self, roots: Iterable[int]) -> dict[int, list[int]]:
        """By root all processes beneath, parents first. An orphan belongs to its namespace's first process."""
        self._looks += 1
        if self._looks % self.ANEW == 0:
            self.forget()
        listed = {int(name) for name in _listed("/proc") if name.isdigit()}
        children: dict[int, list[int]] = {}
        for pid in listed - self._foreign:  # the name in parentheses may itself hold any character
            words = _text(f"/proc/{pid}/stat").rpartition(")")[2].split() or ["0", "0"]
            children.setdefault(int(words[1]), []).append(pid)
        found: dict[int, list[int]] = {}
        for root in roots:
            found[root] = beneath = list(children.get(root, ()))
            for child in beneath:  # grows while it is walked
                beneath += children.get(child, ())
        self._foreign = listed.difference(*found.values())
        return found


def descendants(pid: int) -> list[int]:
    """By a fresh look at all processes: some milliseconds."""
    return ProcessTable().look([pid])[pid]


def private_bytes(pid: int) -> int:
    """Memory that is no file's and that the process has for itself: what it touched, resident or swapped out, and its page
    tables, which reading alone fills. Copies shared with a parent count."""
    return _kilobytes(f"/proc/{pid}/status", PRIVATE_FIELDS) * 1024


def proportional_bytes(pid: int) -> int:
    """The same with shared pages divided among those who share them; slow, since the kernel walks the page tables."""
    shared = _kilobytes(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "SwapPss:"))
    return (
        (shared + _kilobytes(f"/proc/{pid}/status", ("VmPTE:",))) * 1024
        if shared
        else private_bytes(pid)
    )


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


def _kilobytes(path: str, fields: tuple[str, ...]) -> int:
    return sum(int(line.split()[1]) for line in _text(path).splitlines() if line.startswith(fields))


def _listed(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except OSError:
        return []


def _text(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


STEP = 5
MOST = 19


def sandbox_niceness() -> int:
    """Of a sandbox that the calling thread starts."""
    return min(MOST, os.getpriority(os.PRIO_PROCESS, 0) + STEP)


def stand_back(leader: int, niceness: int) -> bool:
    """All processes of the session and group that `leader` leads; answers as `session_stands_back`."""
    with contextlib.suppress(OSError):  # it has ended
        os.setpriority(os.PRIO_PGRP, leader, niceness)
    return session_stands_back(leader, niceness)


def session_stands_back(pid: int, niceness: int) -> bool:
    """The session of this process. False where the kernel wants to be asked again a little later: it lets others than root
    change ten sessions a second."""
    try:
        with open(f"/proc/{pid}/autogroup", "r+b", buffering=0) as file:
            if int((file.read().split() or [b"0"])[-1]) < niceness:
                return file.write(str(niceness).encode()) is not None
    except OSError:
        pass  # it has ended, or this is a kernel without
    return True
