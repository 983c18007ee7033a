"""The indexes that this process holds, least recently used first out, each brought up to date before it is used."""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.utils import timezone

from apps.core.metrics.base import counter, gauge
from apps.search.backends import Head, backend
from apps.search.index.phrases import Phrases
from apps.search.index.rows import UserRows
from apps.search.models import Passage

BYTES = gauge("izzy_index_bytes", "Memory that the users' search indexes hold in the processes.")
OWNERS = gauge("izzy_indexes", "Search indexes that the processes hold, two for most users.")
LOADS = counter("izzy_index_loads_total", "Search indexes that were read anew from the rows.")
REBUILD_SHARE = 4
"""An index of which more than one row in this many is dead is loaded anew."""

Index = UserRows | Phrases


@dataclass(slots=True)
class _Entry:
    """`bytes` are those of `index` when it was last brought up to date: counting them takes longer than a sum."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    index: Index | None = None
    bytes: int = 0


_entries: OrderedDict[tuple[UUID, type[Index]], _Entry] = OrderedDict()
_lock = threading.Lock()


@contextmanager
def index_open(
    user_id: UUID, *, past: bool = False, head: Head | None = None
) -> Iterator[tuple[Head, UserRows] | None]:
    """The user's index, with everything that was committed before the call; None where nothing is indexed.

    With `past` also what documents said before they were changed, which is read for this call alone: to ask for
    another time is rare, and no other search shall bear it. `head` is the index's head where it was read a moment ago.

    Nobody else alters or reads it until the block ends.

    Inside an open transaction whose changes the shared index does not have, the rows are read for this call alone:
    they may yet be rolled back.
    """
    head = head or backend.head(user_id)
    if head is None:
        yield None
    elif past and Passage.objects.filter(user_id=user_id, past=True).exists():
        yield head, UserRows(head, backend.read_all(head, past=True))
    else:
        with _opened(head, UserRows) as rows:
            assert isinstance(rows, UserRows)  # noqa: S101 - as asked for
            yield head, rows


@contextmanager
def phrases_open(user_id: UUID, *, head: Head | None = None) -> Iterator[tuple[Head, Phrases] | None]:
    """The user's occasions, as `index_open` gives the rest: search does without them."""
    head = head or backend.head(user_id)
    if head is None:
        yield None
    else:
        with _opened(head, Phrases) as phrases:
            assert isinstance(phrases, Phrases)  # noqa: S101 - as asked for
            yield head, phrases


def index_ready(user_id: UUID) -> None:
    """Brings the user's indexes up to date now, so that the next to look does not wait for it."""
    with phrases_open(user_id), index_open(user_id):
        pass


@contextmanager
def _opened(head: Head, kind: type[Index]) -> Iterator[Index]:
    key = head.user_id, kind
    with _lock:
        entry = _entries.setdefault(key, _Entry())
        _entries.move_to_end(key)
    with entry.lock:
        index = entry.index
        if index is not None and index.change > head.change:  # somebody was faster
            head = backend.head(head.user_id) or head
        spaces = (head.owner, head.base, head.side)
        if index is not None and (index.owner, index.base, index.side_space) != spaces:
            index = None
        if index is None or index.change != head.change:
            if connection.in_atomic_block:
                index = _read(kind, head)
            else:
                entry.index = index = _refresh(index, kind, head)
                entry.bytes = index.bytes
                _evict(keep=key)
        yield index


def forget(user_id: UUID | None = None) -> None:
    """Drop one user's indexes, or all, from this process' memory."""
    with _lock:
        for key in [key for key in _entries if user_id is None or key[0] == user_id]:
            del _entries[key]
    _evict()


def held_bytes() -> int:
    """Bytes of all indexes that this process holds."""
    with _lock:
        return sum(entry.bytes for entry in _entries.values())


def _read(kind: type[Index], head: Head) -> Index:
    if kind is UserRows:
        return UserRows(head, backend.read_all(head))
    return Phrases(head, backend.read_occasions(head), now=timezone.now())


def _refresh(index: Index | None, kind: type[Index], head: Head) -> Index:
    """The index with what changed since it was read; all of it anew where change numbers do not tell."""
    if (
        index is None
        or not head.tombstones_from <= index.change <= head.change
        or (index.size - index.living) * REBUILD_SHARE > max(index.size, 1000)
    ):
        LOADS.add()
        return _read(kind, head)
    removed = backend.read_removed(head, index.change)
    if isinstance(index, UserRows):
        index.take(backend.read_changed(head, index.change), removed, head.change)
    else:
        changed = backend.read_occasions(head, index.change)
        index.take(changed, removed, head.change, now=timezone.now())
    return index


def _evict(keep: tuple[UUID, type[Index]] | None = None) -> None:
    """Drops what is beyond the memory that indexes may take, and counts what is left."""
    limit = settings.IZZY_INDEX_MEMORY_MB * 1024 * 1024
    with _lock:
        total = sum(entry.bytes for entry in _entries.values())
        for key in list(_entries):
            if total <= limit:
                break
            if key != keep and _entries[key].index is not None:
                total -= _entries.pop(key).bytes
        BYTES.set(total)
        OWNERS.set(len(_entries))
