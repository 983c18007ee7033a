"""Looking everywhere: which fragments others share, where something is found, cleaning it, and what is left."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, models, transaction

from apps.core.purging.columns import Column, columns
from apps.core.purging.fragments import Run
from apps.core.purging.places import Hits, Place
from apps.core.purging.trace import Trace, redact_text, redact_value
from apps.core.registries import purge_places

MIN_CLEANED = 150
"""A character column of fewer signs holds a name that something goes by: it is reported, not rewritten."""


@dataclass(slots=True)
class Tally:
    """What was found in one place, in rows: before, cleaned, and afterwards."""

    place: str
    label: str
    why: str = ""
    found: int = 0
    removed: int = 0
    left: int = 0

    def to_json(self) -> dict[str, object]:
        return {name: getattr(self, name) for name in self.__slots__}


def places_by_column() -> dict[str, tuple[str, Place]]:
    return {name: (key, place) for key, place in purge_places for name in place.columns}


def walked() -> Iterator[tuple[Column, Place | None]]:
    """Every column that may hold words, with the place that answers for it."""
    known = places_by_column()
    for column in columns():
        place = known[column.name][1] if column.name in known else None
        if place is None or not place.wordless:
            yield column, place


def shared_fragments(trace: Trace) -> tuple[set[Run], set[str]]:
    """The fragments that also stand in a text of the user's own which stays and is not theirs to choose."""
    runs: set[Run] = set()
    stems: set[str] = set()
    for column, place in walked():
        if place is None or not place.keep or place.offered:
            continue
        exempt = _exempt(place, trace).get(column.name, ())
        for pk, text in column.texts(trace.user_id):
            if trace.own.may_match(text) and column.keys([pk])[0] not in exempt:
                more_runs, more_stems = trace.own.found_in(text)
                runs |= more_runs
                stems |= more_stems
    return runs, stems


def _exempt(place: Place, trace: Trace) -> Mapping[str, Any]:
    return place.exempt(trace) if place.exempt else {}


def find(trace: Trace) -> dict[str, list[Any]]:
    """By column, the rows that name what is purged or quote it."""
    hits: dict[str, list[Any]] = {}
    for column, place in walked():
        concerns: Callable[[str], bool] = trace.concerns
        if place is not None and place.keep:
            concerns = trace.says_same
        found = [pk for pk, text in _texts(column, trace.user_id, trace) if concerns(text)]
        if found:
            hits[column.name] = column.keys(found)
    return hits


def left_over(trace: Trace) -> dict[str, list[Any]]:
    """By column, the rows that still quote what was purged."""
    left: dict[str, list[Any]] = {}
    for column, place in walked():
        leaks = trace.says_same if place is not None and place.keep else trace.leaks
        found = [pk for pk, text in _texts(column, trace.user_id, trace) if leaks(text)]
        if found:
            left[column.name] = column.keys(found)
    return left


def _texts(column: Column, user_id: UUID, trace: Trace) -> Iterator[tuple[Any, str]]:
    """A column's texts. In a table of nobody's only rows that name the user or the purged row belong to the purge."""
    for pk, text in column.texts(user_id):
        if column.owner or trace.names(text) or str(user_id) in text or user_id.hex in text:
            yield pk, text


def clear(trace: Trace, hits: Hits) -> dict[str, int]:
    """Clean what was found; returns by place how many rows were changed. Idempotent, one transaction per place."""
    known = places_by_column()
    removed: dict[str, int] = defaultdict(int)
    for key, place in purge_places:
        if place.clear is not None:
            with transaction.atomic():
                removed[key] += place.clear(trace, hits)
    for column in columns():
        if column.name in hits and _is_cleaned_string_by_string(known.get(column.name)):
            key = known[column.name][0] if column.name in known else column.name
            removed[key] += clean_column(column, hits[column.name], trace)
    return removed


def _is_cleaned_string_by_string(entry: tuple[str, Place] | None) -> bool:
    return entry is None or (entry[1].clear is None and not entry[1].keep)


def clean_column(column: Column, keys: Iterable[Any], trace: Trace) -> int:
    """Take the fragments out of the strings of some rows, leaving everything else as it is."""
    field = column.model._meta.get_field(column.field)
    limit = field.max_length if isinstance(field, models.CharField) else None
    if isinstance(field, models.BinaryField | models.FileField) or (limit or MIN_CLEANED) < MIN_CLEANED:
        return 0
    return sum(_clean_value(column, pk, limit, trace) for pk in keys)


@transaction.atomic
def _clean_value(column: Column, pk: Any, limit: int | None, trace: Trace) -> int:
    """Clean one value; 0 where it is clean, or where another row has the cleaned one already and must be alone in it."""
    row = column.model._base_manager.filter(pk=pk)
    value = row.values_list(column.field, flat=True).first()
    cleaned = redact_text(value, trace) if isinstance(value, str) else redact_value(value, trace)
    if cleaned == value:
        return 0
    if isinstance(cleaned, str) and limit:
        cleaned = cleaned[:limit]
    try:
        with transaction.atomic():
            return row.update(**{column.field: cleaned})
    except IntegrityError:
        return 0
