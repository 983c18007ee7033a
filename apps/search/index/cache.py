"""The indexes that this process holds, least recently used first out, each brought up to date before it is used."""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.db import connection

from apps.search.backends import Head, backend
from apps.search.index.rows import UserRows
from apps.search.models import Passage

REBUILD_SHARE = 4
"""An index of which more than one row in this many is dead is loaded anew."""


@dataclass(slots=True)
class _Entry:
    """`bytes` are those of `rows` when they were last brought up to date: counting them takes longer than a sum."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    rows: UserRows | None = None
    bytes: int = 0


_entries: OrderedDict[UUID, _Entry] = OrderedDict()
_lock = threading.Lock()


@contextmanager
def index_open(user_id: UUID, *, past: bool = False) -> Iterator[tuple[Head, UserRows] | None]:
    """The user's index, with everything that was committed before the call; None where nothing is indexed.

    With `past` also what documents said before they were changed, which is read for this call alone: to ask for
    another time is rare, and no other search shall bear it.

    Nobody else alters or reads it until the block ends.

    Inside an open transaction whose changes the shared index does not have, the rows are read for this call alone:
    they may yet be rolled back.
    """
    head = backend.head(user_id)
    if head is None:
        yield None
        return
    if past and Passage.objects.filter(user_id=user_id, past=True).exists():
        yield head, UserRows(head, backend.read_all(head, past=True))
        return
    with _lock:
        entry = _entries.setdefault(user_id, _Entry())
        _entries.move_to_end(user_id)
    with entry.lock:
        rows = entry.rows
        if rows is None or (rows.change, rows.space_id, rows.owner) != (
            head.change,
            head.space_id,
            head.owner,
        ):
            if connection.in_atomic_block:
                rows = UserRows(head, backend.read_all(head))
            else:
                entry.rows = rows = _refresh(rows, head)
                entry.bytes = rows.bytes
                _evict(keep=user_id)
        yield head, rows


def forget(user_id: UUID | None = None) -> None:
    """Drop one user's index, or all, from this process' memory."""
    with _lock:
        if user_id is None:
            _entries.clear()
        else:
            _entries.pop(user_id, None)


def holds(user_id: UUID) -> bool:
    """Whether the user's index is in this process' memory."""
    with _lock:
        entry = _entries.get(user_id)
        return entry is not None and entry.rows is not None


def held_bytes() -> int:
    """Bytes of all indexes that this process holds."""
    with _lock:
        return sum(entry.bytes for entry in _entries.values())


def _refresh(rows: UserRows | None, head: Head) -> UserRows:
    """The rows with what changed since they were read; all of it anew where change numbers do not tell."""
    if (
        rows is None
        or (rows.space_id, rows.owner, rows.dimension) != (head.space_id, head.owner, head.dimension)
        or not head.tombstones_from <= rows.change <= head.change
        or rows.dead * REBUILD_SHARE > max(rows.size, 1000)
    ):
        return UserRows(head, backend.read_all(head))
    removed = backend.read_removed(head, rows.change)
    rows.take(backend.read_changed(head, rows.change), removed, head.change)
    return rows


def _evict(keep: UUID) -> None:
    limit = settings.IZZY_INDEX_MEMORY_MB * 1024 * 1024
    with _lock:
        total = sum(entry.bytes for entry in _entries.values())
        if total <= limit:
            return
        for user_id in list(_entries):
            if user_id != keep and _entries[user_id].rows is not None:
                total -= _entries.pop(user_id).bytes
            if total <= limit:
                return
