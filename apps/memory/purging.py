"""Where the memory keeps words of notes and files: the rows themselves, their past, links, windows."""

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Q

from apps.core.purging.places import Hits, Place
from apps.core.purging.trace import Trace
from apps.core.registries import purge_places

from .capture.services import windows_scrub
from .models import Memory, MemoryEdge, MemoryFile, MemoryFileRevision, MemoryRevision

_NOTES = ("memory.memory.content", "memory.memory.tags", "memory.memory.category")
_PAST = ("memory.memoryrevision.content", "memory.memoryrevision.state", "memory.memoryrevision.reason")
_FILES = ("memory.memoryfile.content", "memory.memoryfile.path")
_FILES_PAST = (
    "memory.memoryfilerevision.content",
    "memory.memoryfilerevision.path",
    "memory.memoryfilerevision.reason",
)
_WINDOWS = tuple(
    f"memory.capturewindow.{name}"
    for name in ("segments", "shown", "gate_reason", "dropped", "error", "message_ids", "memory_ids")
)


def register_places() -> None:
    places = {
        "memory.notes": Place(
            label="Notes",
            columns=_NOTES,
            keep=True,
            exempt=own_notes,
            why="Other notes say the same; they stay.",
        ),
        "memory.history": Place(
            label="What notes were before",
            columns=_PAST,
            keep=True,
            exempt=own_revisions,
            why="The history of other notes says the same; it stays with them.",
        ),
        "memory.links": Place(
            label="Links between notes", columns=("memory.memoryedge.relation",), look=links_left
        ),
        "memory.files": Place(
            label="Files",
            columns=_FILES,
            keep=True,
            exempt=own_files,
            why="Other files say the same; they stay.",
        ),
        "memory.file_history": Place(
            label="What files were before",
            columns=_FILES_PAST,
            keep=True,
            exempt=own_file_revisions,
            why="The history of other files says the same; it stays with them.",
        ),
        "memory.windows": Place(
            label="What waits to be read for memories",
            columns=_WINDOWS,
            why="Messages that stay, waiting to be read.",
        ),
        "memory.windows_scrub": Place(label="Windows made into it", clear=windows_clear),
    }
    for name, place in places.items():
        purge_places.register(name, place)


def own_notes(trace: Trace) -> Mapping[str, Collection[Any]]:
    return dict.fromkeys(_NOTES, trace.ids)


def own_revisions(trace: Trace) -> Mapping[str, Collection[Any]]:
    rows = MemoryRevision.objects.for_user(trace.user_id).filter(memory_id__in=trace.ids)
    return dict.fromkeys(_PAST, frozenset(rows.values_list("pk", flat=True)))


def own_files(trace: Trace) -> Mapping[str, Collection[Any]]:
    return dict.fromkeys(_FILES, trace.ids)


def own_file_revisions(trace: Trace) -> Mapping[str, Collection[Any]]:
    rows = MemoryFileRevision.objects.for_user(trace.user_id).filter(file_id__in=trace.ids)
    return dict.fromkeys(_FILES_PAST, frozenset(rows.values_list("pk", flat=True)))


def notes_left(trace: Trace) -> int:
    return Memory.objects.with_deleted(trace.user_id).filter(pk__in=trace.ids).count()


def files_left(trace: Trace) -> int:
    return MemoryFile.objects.with_deleted(trace.user_id).filter(pk__in=trace.ids).count()


def links_left(trace: Trace) -> int:
    """The links of a purged note, whatever their words."""
    edges = MemoryEdge.objects.for_user(trace.user_id)
    return edges.filter(Q(source_id__in=trace.ids) | Q(target_id__in=trace.ids)).count()


def windows_clear(trace: Trace, hits: Hits) -> int:
    return windows_scrub(user_id=trace.user_id, memory_ids=trace.ids, message_ids=trace.messages)
