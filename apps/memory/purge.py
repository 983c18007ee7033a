"""Verified deletion of notes and files: hide, clean, look again, write the receipt.

The rows that hold the words go after everything else is clean, so that a purge that is interrupted can be taken up again:
what is looked for stands in them alone. Every step is idempotent and a short transaction of its own.
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.core.db.writing import writing_for
from apps.core.errors import Conflict, NotFound
from apps.core.jobs.fair import one_by_one
from apps.core.purging.places import PLACES, Rule
from apps.core.purging.remains import scrub_request
from apps.core.purging.trace import (
    Fragments,
    Hits,
    PurgePart,
    SourceText,
    Trace,
    clear,
    counted,
    find,
    is_code,
    look,
    purge_parts,
    tallies,
)
from apps.search.documents import Source
from apps.search.embedders.vocabulary import common_words
from apps.search.services import documents_remove
from apps.search.text.analysis import detect_language, stems, stop_words

from .capture.windows import windows_scrub
from .files.texts import ROOT
from .models import (
    KEEP_DELETED,
    OPEN_IMPORTS,
    Import,
    Memory,
    MemoryEdge,
    MemoryFile,
    MemoryFileRevision,
    MemoryRevision,
    MemorySummary,
    Purged,
    PurgeReceipt,
    PurgeState,
    Relation,
    Status,
)
from .notes.changes import plans_call_off
from .notes.revisions import BY_USER
from .occasions.table import tokens_of

logger = logging.getLogger(__name__)

ROUNDS = 3
"""So often what is found is cleaned: something may be written while it goes on."""
MAX_SOURCES = 200
MAX_ALSO = 100
"""Further notes that one purge takes with it."""
MAX_REDACTED = 200
"""Messages that one purge redacts by their ids."""
BATCH = 25
STALE = timedelta(minutes=10)
STAYING_RULES = (Rule.KEEP, Rule.OFFER)
STAYING = {name for place in PLACES if place.rule in STAYING_RULES for name in place.columns}

Redact = bool | Collection[UUID]


def trace_of(
    user_id: UUID, source: Purged, ids: Collection[UUID], messages: Sequence[SourceText] = ()
) -> Trace:
    """Returns what to look for when these notes or files go, with `messages`; what others have of it is not known yet."""
    rows: list[Any] = list(subjects(user_id, source, ids))
    if source == Purged.NOTE:
        revisions = MemoryRevision.objects.owned_by(user_id).filter(memory_id__in=ids)
        labels = ("tags", "occasions")
        states = [
            {**{name: getattr(note, name) for name in labels}, "category": note.category}
            for note in rows
        ]
        states += [revision.state for revision in revisions]
        names = [state.get("category", "") for state in states]
        names += [name for state in states for label in labels for name in state.get(label, [])]
        names += [revision.reason for revision in revisions]
        rows += revisions
    else:
        rows += MemoryFileRevision.objects.owned_by(user_id).filter(file_id__in=ids)
        names = [row.path.removeprefix(f"{ROOT}/").rpartition(".")[0] for row in rows]
    said = [message.text for message in messages if message.role == "user"]
    named = (each for each in _fragments(names) if isinstance(each, str))
    own = Fragments(_fragments([*(row.content for row in rows), *said]).union(named))
    recorded = (getattr(row, "source_message_id", None) for row in rows)
    return Trace(
        user_id=user_id,
        source=source,
        ids=frozenset(ids),
        own=own,
        exclusive=own,
        recorded=frozenset(filter(None, recorded)),
        messages=frozenset(message.id for message in messages),
        related=frozenset(str(message.id) for message in messages),
    )


def _fragments(texts: Sequence[str]) -> Fragments:
    """The fragments of some texts, each in its own language."""
    found, common = set[str | tuple[str, ...]](), common_words()
    for text in texts:
        language = detect_language(text)
        # "The user" is how notes call whose they are.
        function_words = stop_words(language) | stop_words("en") | {"user", "users"}
        found.update(
            each
            for each in Fragments.of(text, function_words)
            # A common word, in whatever form, says nothing of whose it is.
            if isinstance(each, tuple)
            or is_code(each)
            or common.isdisjoint([each, *stems([each], language)])
        )
    return Fragments(found)


def subjects(user_id: UUID, source: str, ids: Collection[UUID]) -> Any:
    """The notes or files of the user with these ids, of any status."""
    model: Any = Memory if source == Purged.NOTE else MemoryFile
    return model.objects.with_deleted(user_id).filter(pk__in=ids)


def _surveyed(
    user_id: UUID, source: Purged, ids: Sequence[UUID], redact: Redact, rules: Collection[Rule] = Rule
) -> tuple[list[SourceText], Trace, Hits]:
    """The messages that say the same, oldest first, those that notes name as their source included; what is looked for with
    those of them that are redacted; and where, in places of these rules, that is found."""
    trace, hits = find(trace_of(user_id, source, ids), STAYING_RULES if redact else rules)
    said = [*trace.recorded, *hits.get("chat.message.text", ())]
    parts = (part.messages(user_id, said) for part in purge_parts.values() if part.messages)
    messages = [text for texts in parts for text in texts][:MAX_SOURCES]
    sources = [replace(text, recorded=text.id in trace.recorded) for text in messages]
    if redact:
        chosen = sources if redact is True else [text for text in sources if text.id in set(redact)]
        trace, hits = find(trace_of(user_id, source, ids, chosen), rules)
    return sources, trace, hits


def _sharing_notes(trace: Trace, hits: Hits) -> list[UUID]:
    """Other notes that say the same, or did before, among what was found."""
    said = hits.get("memory.memoryrevision.content", ())
    past = MemoryRevision.objects.for_user(trace.user_id).filter(pk__in=said)
    said_before = past.values_list("memory_id", flat=True)
    return sorted({*hits.get("memory.memory.content", ()), *said_before} - trace.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """All that a purge would touch beside the row."""

    source: Purged
    id: UUID
    text: str
    sources: Sequence[SourceText]  # messages that say the same
    related: Sequence[Memory]  # notes that do, or that it was merged into or replaced by


def purge_preview(user_id: UUID, source: Purged, key: UUID) -> Preview:
    """NotFound for an unknown or foreign note or file; one of any status has a preview."""
    row = subjects(user_id, source, [key]).first()
    if row is None:
        raise NotFound
    messages, trace, hits = _surveyed(user_id, source, [key], False, STAYING_RULES)
    edges = MemoryEdge.objects.owned_by(user_id).filter(Q(source_id=key) | Q(target_id=key))
    replacing = edges.filter(relation=Relation.SUPERSEDES)
    ends = {end for both in replacing.values_list("source_id", "target_id") for end in both}
    near = Q(pk__in={*_sharing_notes(trace, hits), *ends} - {key}) | Q(supersedes=key)
    related = Memory.objects.with_deleted(user_id).filter(near).distinct().order_by("-updated_at")
    text = row.content if source == Purged.NOTE else row.path
    return Preview(source=source, id=key, text=text, sources=messages, related=list(related))


def memory_purge(
    *,
    user_id: UUID,
    ids: Sequence[UUID],
    source: Purged = Purged.NOTE,
    redact: Redact = False,
    by_sweep: bool = False,
) -> PurgeReceipt:
    """Take notes or files, of any status, out of everything Izzy kept of them, for good.

    `redact`: True for all messages that say the same (see `purge_preview`), or the ids of some of them. NotFound for
    an unknown or foreign row or message, Conflict `turn_running` while an answer that uses one is under way, `import_running`
    while a file waits to be imported.
    """
    ids = list(dict.fromkeys(ids))
    if subjects(user_id, source, ids).count() != len(ids):
        raise NotFound
    sources, trace, hits = _surveyed(user_id, source, ids, redact)
    if not isinstance(redact, bool) and len(trace.messages) != len(set(redact)):
        raise NotFound("There is no message with one of these ids that says the same.")
    if any(part.busy(trace, hits) for part in purge_parts.values() if part.busy):
        raise Conflict(
            "Izzy is answering in a conversation that uses this. Stop the answer or wait for its end.",
            code="turn_running",
        )
    if Import.objects.for_user(user_id).filter(state__in=OPEN_IMPORTS).exists():
        raise Conflict(
            "An import is under way, whose file may hold these words. Wait for its end or cancel it.",
            code="import_running",
        )
    return _finish(hide(trace, ids, by_sweep=by_sweep), sources, trace, hits)


@transaction.atomic
def hide(trace: Trace, ids: Sequence[UUID], *, by_sweep: bool = False) -> PurgeReceipt:
    """Take the rows out of search and sight, so that nothing brings them up again meanwhile; returns the receipt, which is
    all that is needed to finish the purge."""
    gone = {"status": Status.DELETED} if trace.source == Purged.NOTE else {}
    alive = subjects(trace.user_id, trace.source, ids).filter(deleted_at=None)
    alive.update(**gone, deleted_at=timezone.now())
    if trace.source == Purged.NOTE:
        plans_call_off(trace.user_id, ids, BY_USER, purged=True)
    documents_remove(user_id=trace.user_id, source=Source(trace.source), source_ids=ids)
    return PurgeReceipt.objects.create(
        user_id=trace.user_id,
        source=trace.source,
        subject_ids=[str(key) for key in ids],
        message_ids=[str(key) for key in trace.messages],
        by_sweep=by_sweep,
    )


def _finish(
    receipt: PurgeReceipt, sources: Sequence[SourceText], trace: Trace, hits: Hits
) -> PurgeReceipt:
    """Clean what was found, erase the rows, look again, and say in the receipt what was found, removed and left."""
    before, left = counted(trace), hits
    tokens_of.cache_clear()  # words of the notes
    for _ in range(ROUNDS):
        clear(trace, left)
        with transaction.atomic():  # the rows go, and with them their past and links
            documents_remove(user_id=trace.user_id, source=Source(trace.source), source_ids=trace.ids)
            subjects(trace.user_id, trace.source, trace.ids).delete()
            # Figures and tags are counted anew, of what is left, for the next page that asks.
            MemorySummary.objects.filter(pk=trace.user_id).delete()
        left = look(trace, again=True)
        if left.keys() <= STAYING:
            break
    receipt.places = tallies(hits, left, before, counted(trace))
    receipt.source_messages = [
        {
            "id": str(text.id),
            "conversation": str(text.conversation_id),
            "redacted": text.id in trace.messages,
        }
        for text in sources
    ]
    receipt.related_ids = [str(key) for key in _sharing_notes(trace, left)]
    return _ended(receipt, PurgeState.DONE)


def _ended(receipt: PurgeReceipt, state: PurgeState) -> PurgeReceipt:
    receipt.state, receipt.purged_at = state, timezone.now()
    receipt.save()
    scrub_request()
    return receipt


def interrupted_resume() -> None:
    """Sweep: finish purges whose process died. Where the rows are gone already nobody can look any more."""
    rows = PurgeReceipt.objects.unscoped().filter(state=PurgeState.RUNNING)
    one_by_one(rows.filter(started_at__lt=timezone.now() - STALE)[:BATCH], _resume)


def _resume(receipt: PurgeReceipt) -> None:
    source, ids = Purged(receipt.source), [UUID(key) for key in receipt.subject_ids]
    with writing_for(receipt.user_id):
        if subjects(receipt.user_id, source, ids).exists():
            redact = [UUID(key) for key in receipt.message_ids]
            _finish(receipt, *_surveyed(receipt.user_id, source, ids, redact))
        else:
            _ended(receipt, PurgeState.UNPROVEN)


def deleted_purge() -> int:
    """Sweep: purge the notes and files deleted 30 days ago or more, everywhere; returns how many.

    Messages stay: they are conversations, which have a deletion of their own. What an answer under way uses waits for
    the next time, and all while a file is imported.
    """
    return sum(one_by_one(_deleted_batches(), _purge_batch))


def _deleted_batches() -> Iterator[tuple[UUID, Purged, list[UUID]]]:
    for source, objects in ((Purged.NOTE, Memory.objects), (Purged.FILE, MemoryFile.objects)):
        due = objects.all_deleted().filter(deleted_at__lte=timezone.now() - KEEP_DELETED)
        rows = list(due.order_by("user_id", "deleted_at").values_list("user_id", "pk"))
        for start in range(0, len(rows), BATCH):
            for user_id, own in groupby(rows[start : start + BATCH], key=lambda row: row[0]):
                yield user_id, source, [key for _, key in own]


def _purge_batch(batch: tuple[UUID, Purged, list[UUID]]) -> int:
    user_id, source, ids = batch
    try:
        with writing_for(user_id):
            memory_purge(user_id=user_id, ids=ids, source=source, by_sweep=True)
    except Conflict as conflict:
        logger.info("the purge of %d deleted rows waits: %s", len(ids), conflict.code)
        return 0
    return len(ids)


def receipt_get(user_id: UUID, receipt_id: UUID) -> PurgeReceipt:
    """A receipt of the user; NotFound."""
    receipt = PurgeReceipt.objects.for_user(user_id).filter(pk=receipt_id).first()
    if receipt is None:
        raise NotFound
    return receipt


def _links_left(trace: Trace) -> dict[str, int]:
    of_notes = Q(source_id__in=trace.ids) | Q(target_id__in=trace.ids)
    return {"memory.links": MemoryEdge.objects.owned_by(trace.user_id).filter(of_notes).count()}


PURGING = PurgePart(clear=windows_scrub, counts=_links_left)
