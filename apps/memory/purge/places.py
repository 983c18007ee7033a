"""Where the memory keeps words of notes and files: the rows themselves, their past, links, windows."""

from collections.abc import Collection, Mapping
from typing import Any

from django.db.models import Model, Q

from apps.core.purging.places import Hits, Place
from apps.core.purging.trace import Trace
from apps.core.registries import purge_places
from apps.memory.capture.services import windows_scrub
from apps.memory.models import (
    CaptureWindow,
    Memory,
    MemoryEdge,
    MemoryFile,
    MemoryFileRevision,
    MemoryRevision,
)


def register_places() -> None:
    places = {
        **_with_history(
            ("memory.notes", "Notes", Memory, ("content", "tags", "category")),
            ("memory.history", "What notes were before", MemoryRevision, ("content", "state", "reason")),
            parent="memory_id",
        ),
        "memory.folded": Place(
            label="Notes as they are compared",
            columns=_columns(Memory, "folded_content", "folded_tags"),
            wordless=True,  # they go with the text that they are made of
        ),
        "memory.links": Place(
            label="Links between notes", columns=_columns(MemoryEdge, "relation"), look=links_left
        ),
        **_with_history(
            ("memory.files", "Files", MemoryFile, ("content", "path")),
            (
                "memory.file_history",
                "What files were before",
                MemoryFileRevision,
                ("content", "path", "reason"),
            ),
            parent="file_id",
        ),
        "memory.windows": Place(
            label="What waits to be read for memories",
            columns=_columns(
                CaptureWindow,
                *("segments", "shown", "gate_reason", "dropped", "error", "message_ids", "memory_ids"),
            ),
            why="Messages that stay, waiting to be read.",
        ),
        "memory.windows_scrub": Place(label="Windows made into it", clear=windows_clear),
    }
    for name, place in places.items():
        purge_places.register(name, place)


_Rows = tuple[str, str, type[Model], tuple[str, ...]]


def _with_history(rows: _Rows, past: _Rows, *, parent: str) -> dict[str, Place]:
    """What the user wrote, and what it was before: other notes or files keep theirs, but for what is purged itself."""
    name, label, model, fields = rows
    past_name, past_label, past_model, past_fields = past
    return {
        name: Place(
            label=label,
            columns=_columns(model, *fields),
            keep=True,
            exempt=lambda trace: dict.fromkeys(_columns(model, *fields), trace.ids),
            why=f"Other {label.lower()} say the same; they stay.",
        ),
        past_name: Place(
            label=past_label,
            columns=_columns(past_model, *past_fields),
            keep=True,
            exempt=lambda trace: _own_past(trace, past_model, past_fields, parent),
            why=f"The history of other {label.lower()} says the same; it stays with them.",
        ),
    }


def _own_past(
    trace: Trace, model: type[Model], fields: tuple[str, ...], parent: str
) -> Mapping[str, Collection[Any]]:
    rows = model._base_manager.filter(user_id=trace.user_id, **{f"{parent}__in": trace.ids})
    return dict.fromkeys(_columns(model, *fields), frozenset(rows.values_list("pk", flat=True)))


def _columns(model: type[Model], *fields: str) -> tuple[str, ...]:
    return tuple(f"{model._meta.label_lower}.{field}" for field in fields)


def links_left(trace: Trace) -> int:
    """The links of a purged note, whatever their words."""
    edges = MemoryEdge.objects.for_user(trace.user_id)
    return edges.filter(Q(source_id__in=trace.ids) | Q(target_id__in=trace.ids)).count()


def windows_clear(trace: Trace, hits: Hits) -> int:
    return windows_scrub(user_id=trace.user_id, memory_ids=trace.ids, message_ids=trace.messages)
