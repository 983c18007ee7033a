"""Looking everywhere: what is the purged rows' own, where it is found, cleaning it, and what is left."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from apps.core.purging.places import PLACES, Hits, Place, Rule, model_of, rewrite, texts
from apps.core.purging.trace import Fragments, Trace, leaves, redact
from apps.core.registries import purge_parts

_STAYS = {Rule.KEEP, Rule.OFFER}


def find(trace: Trace, rules: Collection[Rule] = tuple(Rule)) -> tuple[Trace, dict[str, list[Any]]]:
    """The trace with what is its own alone and the ids that stand for it; and by column the rows that name what is purged
    or quote it, in places of these rules."""
    shared = Fragments()
    for place in _places(Rule.KEEP):
        for _, _, text in texts(place, trace.user_id, without=trace.ids if place.subject else ()):
            if trace.own.match(text):
                shared |= trace.own.found_in(" ".join(leaves(text)))
    related = {name for _, part in purge_parts for name in part.related(trace)}
    trace = replace(trace, exclusive=trace.own.without(shared), related=trace.related | frozenset(related))
    return trace, look(trace, rules)


def look(trace: Trace, rules: Collection[Rule] = tuple(Rule), *, again: bool = False) -> dict[str, list[Any]]:
    """By column, the rows that name what is purged or quote it; `again`, those that still quote it."""
    hits: dict[str, list[Any]] = defaultdict(list)
    for place in _places(*rules):
        matches = trace.same.match if place.rule in _STAYS else trace.leaks if again else trace.concerns
        for column, pk, text in texts(place, trace.user_id):
            if matches(text):
                hits[column].append(pk)
    return dict(hits)


def _places(*rules: Rule) -> Iterable[Place]:
    return (place for place in PLACES if place.rule in rules)


def clear(trace: Trace, hits: Hits) -> None:
    """Clean what was found. Idempotent, in short transactions."""
    for _, part in purge_parts:
        part.clear(trace, hits)
    for place in _places(Rule.CLEAN):
        for column in hits.keys() & set(place.columns):
            _clean(column, hits[column], trace)


def _clean(column: str, keys: Iterable[Any], trace: Trace) -> None:
    model, name = model_of(column), column.rpartition(".")[2]
    limit = getattr(model._meta.get_field(name), "max_length", None)

    def cleaned(row: Any) -> dict[str, Any]:
        value = redact(getattr(row, name), trace, about=str(row.pk) in trace.related)
        return {name: value[:limit] if isinstance(value, str) else value}

    rewrite(model._base_manager.filter(pk__in=keys), cleaned)


def counted(trace: Trace) -> dict[str, int]:
    """By place, what no column shows."""
    return {name: count(trace) for _, part in purge_parts for name, count in part.counts.items()}


def tallies(
    hits: Hits, left: Hits, before: Mapping[str, int], after: Mapping[str, int]
) -> list[dict[str, Any]]:
    """A receipt's lines `{place, label, why, found, removed, left}` by name, in rows: each counts once, in however many of its
    columns something was found."""
    lines = []
    for place in sorted(PLACES, key=lambda place: place.name):
        found_rows, left_rows = _rows(place, hits), _rows(place, left)
        remain = max(len(left_rows), after.get(place.name, 0))
        found = max(len(found_rows | left_rows), before.get(place.name, 0), remain)
        if found or place.label:
            why = place.why if remain else ""
            line = {"place": place.name, "label": place.title, "why": why}
            lines.append({**line, "found": found, "removed": found - remain, "left": remain})
    return lines


def _rows(place: Place, hits: Hits) -> set[Any]:
    return {(column.rpartition(".")[0], key) for column in place.columns for key in hits.get(column, ())}
