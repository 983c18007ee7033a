"""Purging: hide, look everywhere, clean, erase, look everywhere again, write the receipt, clean the disk.

The rows that hold the words go last, so that a purge that is interrupted can be taken up again (`sweeps.py`): what is
looked for stands in them alone. Every step is idempotent and a short transaction of its own.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from django.apps import apps
from django.db import transaction
from django.utils import timezone
from django.utils.text import capfirst

from apps.core.errors import Conflict, NotFound
from apps.core.purging.disk import scrub_request
from apps.core.purging.places import Hits, SourceText
from apps.core.purging.search import Tally, clear, find, left_over, places_by_column
from apps.core.purging.trace import Trace
from apps.core.registries import purge_places
from apps.memory.models import Memory, MemoryFile, MemoryRevision, Purged, PurgeReceipt, PurgeState, Status
from apps.memory.services import memories_erase
from apps.memory.services.file_history import file_erase
from apps.search.documents import Source
from apps.search.services import documents_remove

from .tracing import sources_of, trace_of

ROUNDS = 3
"""So often what is found is cleaned: something may be written while it goes on."""
MAX_ALSO = 100
"""Further notes that one purge takes with it."""
MAX_REDACTED = 200
"""Messages that one purge is told to redact by their ids."""

Redact = bool | Collection[UUID]


def memory_purge(
    *, user_id: UUID, memory_id: UUID, redact: Redact = False, also: Collection[UUID] = ()
) -> PurgeReceipt:
    """Take a note, of any status, and the notes `also` out of everything Izzy kept of them, for good.

    `redact`: True for all messages that say the same (see `memory_purge_preview`), or the ids of some of them. NotFound for
    an unknown or foreign note or message, Conflict `turn_running` while an answer that uses the note is under way.
    """
    ids = list(dict.fromkeys([memory_id, *also]))
    rows = Memory.objects.with_deleted(user_id).filter(pk__in=ids)
    if rows.count() != len(ids):
        raise NotFound
    return purge(user_id=user_id, source=Purged.NOTE, ids=ids, redact=redact)


def file_purge(*, user_id: UUID, file_id: UUID, redact: Redact = False) -> PurgeReceipt:
    """The same for a file of the memory, deleted or not."""
    if not MemoryFile.objects.with_deleted(user_id).filter(pk=file_id).exists():
        raise NotFound
    return purge(user_id=user_id, source=Purged.FILE, ids=[file_id], redact=redact)


def purge(
    *, user_id: UUID, source: Purged, ids: Sequence[UUID], redact: Redact, by_sweep: bool = False
) -> PurgeReceipt:
    """What the purges of notes and files share; `ids` are rows of the user."""
    first = trace_of(user_id=user_id, source=source, ids=ids)
    sources = sources_of(first, recorded_sources(user_id, source, ids))
    chosen = _chosen(sources, redact)
    trace = first if not chosen else _with_messages(first, source, chosen)
    hits = find(trace)
    if any(place.busy(trace, hits) for _, place in purge_places if place.busy):
        raise Conflict(
            "Izzy is answering in a conversation that uses this. Stop the answer or wait for its end.",
            code="turn_running",
        )
    receipt = _begin(trace, ids, chosen, by_sweep=by_sweep)
    return _carry_out(receipt, trace, hits, sources)


def purge_resume(receipt: PurgeReceipt) -> PurgeReceipt:
    """Finish a purge that was interrupted, from its receipt."""
    ids = [UUID(key) for key in receipt.subject_ids]
    model: Any = Memory if receipt.source == Purged.NOTE else MemoryFile
    left = list(model.objects.with_deleted(receipt.user_id).filter(pk__in=ids).values_list("pk", flat=True))
    if not left:
        receipt.state, receipt.purged_at = PurgeState.UNPROVEN, timezone.now()
        receipt.save(update_fields=["state", "purged_at"])
        scrub_request()
        return receipt
    source = Purged(receipt.source)
    first = trace_of(user_id=receipt.user_id, source=source, ids=ids)
    chosen = {UUID(key) for key in receipt.message_ids}
    sources = sources_of(first, recorded_sources(receipt.user_id, source, ids) | chosen)
    trace = _with_messages(first, source, [text for text in sources if text.id in chosen])
    return _carry_out(receipt, trace, find(trace), sources)


def recorded_sources(user_id: UUID, source: Purged, ids: Collection[UUID]) -> set[UUID]:
    """The messages that notes name as their source."""
    if source != Purged.NOTE:
        return set()
    rows = Memory.objects.with_deleted(user_id).filter(pk__in=ids).exclude(source_message_id=None)
    return {key for key in rows.values_list("source_message_id", flat=True) if key}


def _chosen(sources: Sequence[SourceText], redact: Redact) -> list[SourceText]:
    if isinstance(redact, bool):
        return list(sources) if redact else []
    wanted = set(redact)
    chosen = [text for text in sources if text.id in wanted]
    if len(chosen) != len(wanted):
        raise NotFound("There is no message with one of these ids that says the same.")
    return chosen


def _with_messages(first: Trace, source: Purged, chosen: Sequence[SourceText]) -> Trace:
    return trace_of(
        user_id=first.user_id,
        source=source,
        ids=first.ids,
        messages=[text.id for text in chosen],
        said=[text.text for text in chosen if text.role == "user"],
    )


@transaction.atomic
def _begin(
    trace: Trace, ids: Sequence[UUID], chosen: Sequence[SourceText], *, by_sweep: bool
) -> PurgeReceipt:
    """Take the rows out of search and sight, so that nothing brings them up again meanwhile."""
    now = timezone.now()
    if trace.source == Purged.NOTE:
        alive = Memory.objects.with_deleted(trace.user_id).filter(pk__in=ids).exclude(status=Status.DELETED)
        alive.update(status=Status.DELETED, deleted_at=now)
        documents_remove(user_id=trace.user_id, source=Source.MEMORY, source_ids=ids)
    else:
        MemoryFile.objects.with_deleted(trace.user_id).filter(pk__in=ids, deleted_at=None).update(
            deleted_at=now
        )
        documents_remove(user_id=trace.user_id, source=Source.FILE, source_ids=ids)
    return PurgeReceipt.objects.create(
        user_id=trace.user_id,
        source=trace.source,
        subject_ids=[str(key) for key in ids],
        message_ids=[str(text.id) for text in chosen],
        by_sweep=by_sweep,
    )


def _carry_out(
    receipt: PurgeReceipt, trace: Trace, hits: Hits, sources: Sequence[SourceText]
) -> PurgeReceipt:
    before = _looked(trace)
    clear(trace, hits)
    _erase(trace)
    left = left_over(trace)
    for _ in range(ROUNDS - 1):
        if not left.keys() - kept_columns():
            break
        again = find(trace)
        if not clear(trace, again):
            break
        left = left_over(trace)
    receipt.places = [tally.to_json() for tally in _tallies(hits, left, before, _looked(trace))]
    receipt.source_messages = [_pointer(text, trace) for text in sources]
    receipt.related_ids = [str(key) for key in sharing_notes(trace)]
    receipt.state, receipt.purged_at = PurgeState.DONE, timezone.now()
    receipt.save()
    scrub_request()
    return receipt


def _erase(trace: Trace) -> None:
    if trace.source == Purged.NOTE:
        memories_erase(user_id=trace.user_id, memory_ids=trace.ids)
        return
    for file_id in trace.ids:
        file_erase(user_id=trace.user_id, file_id=file_id)


def kept_columns() -> set[str]:
    """The columns that are never cleaned by themselves."""
    return {name for _, place in purge_places if place.keep for name in place.columns}


def _looked(trace: Trace) -> dict[str, int]:
    return {name: place.look(trace) for name, place in purge_places if place.look}


def _tallies(hits: Hits, left: Hits, before: dict[str, int], after: dict[str, int]) -> list[Tally]:
    """One line for each place that answers for columns or looks for itself, and for every other column with a hit.

    A row counts once, in however many of its columns something was found.
    """
    tallies = {
        name: Tally(name, place.label, place.why)
        for name, place in purge_places
        if place.look or (place.columns and not place.wordless)
    }
    found_rows, left_rows = _rows(hits), _rows(left)
    for name in tallies.keys() | found_rows.keys() | left_rows.keys():
        tally = tallies[name] if name in tallies else Tally(name, _label_of(name))
        tallies[name] = tally
        tally.left = max(len(left_rows[name]), after.get(name, 0))
        tally.found = max(len(found_rows[name] | left_rows[name]), before.get(name, 0), tally.left)
        tally.removed = tally.found - tally.left
        tally.why = tally.why if tally.left else ""
    return [tallies[name] for name in sorted(tallies)]


def _label_of(name: str) -> str:
    """What people call the rows of a column that no place answers for."""
    app, model, _ = name.split(".")
    return capfirst(str(apps.get_model(app, model)._meta.verbose_name_plural))


def _rows(hits: Hits) -> dict[str, set[Any]]:
    """By place, the rows in which something was found."""
    known = places_by_column()
    rows: dict[str, set[Any]] = defaultdict(set)
    for column, keys in hits.items():
        name = known[column][0] if column in known else column
        rows[name] |= {(column.rpartition(".")[0], key) for key in keys}
    return rows


def _pointer(text: SourceText, trace: Trace) -> dict[str, Any]:
    return {
        "id": str(text.id),
        "conversation": str(text.conversation_id),
        "redacted": text.id in trace.messages,
    }


def sharing_notes(trace: Trace) -> list[UUID]:
    """Other notes of the user that say the same, or did before."""
    found = {
        pk
        for pk, content in Memory.objects.with_deleted(trace.user_id)
        .exclude(pk__in=trace.ids)
        .values_list("pk", "content")
        .iterator()
        if trace.says_same(content)
    }
    past = MemoryRevision.objects.for_user(trace.user_id).exclude(memory_id__in=trace.ids)
    texts = past.values_list("memory_id", "content").iterator()
    found |= {key for key, content in texts if trace.says_same(content)}
    return sorted(found)
