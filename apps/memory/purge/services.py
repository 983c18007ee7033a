"""Purging notes and files: hide, clean, look again, write the receipt.

The rows that hold the words go after everything else is clean, so that a purge that is interrupted can be taken up again:
what is looked for stands in them alone. Every step is idempotent and a short transaction of its own.
"""

import logging
from collections.abc import Collection, Sequence
from datetime import timedelta
from itertools import groupby
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.core.errors import Conflict, NotFound
from apps.core.purging.disk import scrub_request
from apps.core.purging.places import (
    PLACES,
    Hits,
    PurgePart,
    Rule,
    SourceText,
    clear,
    counted,
    find,
    look,
    purge_parts,
    tallies,
)
from apps.core.purging.trace import Trace
from apps.memory.capture.windows import windows_scrub
from apps.memory.models import (
    KEEP_DELETED,
    Memory,
    MemoryFile,
    Purged,
    PurgeReceipt,
    PurgeState,
    Status,
)
from apps.search.documents import Source
from apps.search.services import documents_remove

from .selectors import edges_of, saying_same, sharing_notes, subjects, trace_of

logger = logging.getLogger(__name__)

ROUNDS = 3
"""So often what is found is cleaned: something may be written while it goes on."""
MAX_ALSO = 100
"""Further notes that one purge takes with it."""
MAX_REDACTED = 200
"""Messages that one purge is told to redact by their ids."""
BATCH = 25
STALE = timedelta(minutes=10)
STAYING = {name for place in PLACES if place.rule in {Rule.KEEP, Rule.OFFER} for name in place.columns}

Redact = bool | Collection[UUID]


def memory_purge(
    *, user_id: UUID, memory_id: UUID, redact: Redact = False, also: Collection[UUID] = ()
) -> PurgeReceipt:
    """Take a note, of any status, and the notes `also` out of everything Izzy kept of them, for good.

    `redact`: True for all messages that say the same (see `memory_purge_preview`), or the ids of some of them. NotFound for
    an unknown or foreign note or message, Conflict `turn_running` while an answer that uses the note is under way.
    """
    return _purge(user_id, Purged.NOTE, list(dict.fromkeys([memory_id, *also])), redact)


def file_purge(*, user_id: UUID, file_id: UUID, redact: Redact = False) -> PurgeReceipt:
    """The same for a file of the memory, deleted or not."""
    return _purge(user_id, Purged.FILE, [file_id], redact)


def _purge(
    user_id: UUID, source: Purged, ids: Sequence[UUID], redact: Redact, *, by_sweep: bool = False
) -> PurgeReceipt:
    if subjects(user_id, source, ids).count() != len(ids):
        raise NotFound
    sources, trace, hits = _surveyed(user_id, source, ids, redact)
    if not isinstance(redact, bool) and len(trace.messages) != len(set(redact)):
        raise NotFound("There is no message with one of these ids that says the same.")
    if any(part.busy(trace, hits) for _, part in purge_parts):
        raise Conflict(
            "Izzy is answering in a conversation that uses this. Stop the answer or wait for its end.",
            code="turn_running",
        )
    return _finish(hide(trace, ids, by_sweep=by_sweep), sources, trace, hits)


def _surveyed(
    user_id: UUID, source: Purged, ids: Sequence[UUID], redact: Redact
) -> tuple[list[SourceText], Trace, Hits]:
    """The messages that say the same, what is looked for with those of them that are redacted, and where that is found."""
    sources, _ = saying_same(trace_of(user_id, source, ids))
    chosen = sources if redact is True else [text for text in sources if text.id in set(redact or ())]
    return sources, *find(trace_of(user_id, source, ids, chosen))


@transaction.atomic
def hide(trace: Trace, ids: Sequence[UUID], *, by_sweep: bool = False) -> PurgeReceipt:
    """Take the rows out of search and sight, so that nothing brings them up again meanwhile; returns the receipt, which is
    all that is needed to finish the purge."""
    gone = {"status": Status.DELETED} if trace.source == Purged.NOTE else {}
    alive = subjects(trace.user_id, trace.source, ids).filter(deleted_at=None)
    alive.update(**gone, deleted_at=timezone.now())
    documents_remove(user_id=trace.user_id, source=Source(trace.source), source_ids=ids)
    return PurgeReceipt.objects.create(
        user_id=trace.user_id,
        source=trace.source,
        subject_ids=[str(key) for key in ids],
        message_ids=[str(key) for key in trace.messages],
        by_sweep=by_sweep,
    )


def _finish(receipt: PurgeReceipt, sources: Sequence[SourceText], trace: Trace, hits: Hits) -> PurgeReceipt:
    """Clean what was found, erase the rows, look again, and say in the receipt what was found, removed and left."""
    before, left = counted(trace), hits
    for _ in range(ROUNDS):
        clear(trace, left)
        _erase(trace)
        left = look(trace, again=True)
        if left.keys() <= STAYING:
            break
    receipt.places = tallies(hits, left, before, counted(trace))
    receipt.source_messages = [
        {"id": str(text.id), "conversation": str(text.conversation_id), "redacted": text.id in trace.messages}
        for text in sources
    ]
    receipt.related_ids = [str(key) for key in sharing_notes(trace, left)]
    return _ended(receipt, PurgeState.DONE)


@transaction.atomic
def _erase(trace: Trace) -> None:
    """The rows go, and with them their past and links."""
    documents_remove(user_id=trace.user_id, source=Source(trace.source), source_ids=trace.ids)
    subjects(trace.user_id, trace.source, trace.ids).delete()


def _ended(receipt: PurgeReceipt, state: PurgeState) -> PurgeReceipt:
    receipt.state, receipt.purged_at = state, timezone.now()
    receipt.save()
    scrub_request()
    return receipt


def interrupted_resume() -> None:
    """Sweep: finish purges whose process died. Where the rows are gone already nobody can look any more."""
    rows = PurgeReceipt.objects.unscoped().filter(state=PurgeState.RUNNING)
    for receipt in rows.filter(started_at__lt=timezone.now() - STALE)[:BATCH]:
        source, ids = Purged(receipt.source), [UUID(key) for key in receipt.subject_ids]
        if subjects(receipt.user_id, source, ids).exists():
            redact = [UUID(key) for key in receipt.message_ids]
            _finish(receipt, *_surveyed(receipt.user_id, source, ids, redact))
        else:
            _ended(receipt, PurgeState.UNPROVEN)


def deleted_purge() -> int:
    """Sweep: purge the notes and files deleted 30 days ago or more, everywhere; returns how many.

    Messages stay: they are conversations, which have a deletion of their own. What an answer under way uses waits for
    the next time.
    """
    purged = 0
    for source, model in ((Purged.NOTE, Memory), (Purged.FILE, MemoryFile)):
        due = model.objects.all_deleted().filter(deleted_at__lte=timezone.now() - KEEP_DELETED)
        rows = list(due.order_by("user_id", "deleted_at").values_list("user_id", "pk"))
        for start in range(0, len(rows), BATCH):
            for user_id, own in groupby(rows[start : start + BATCH], key=lambda row: row[0]):
                batch = [key for _, key in own]
                try:
                    _purge(user_id, source, batch, False, by_sweep=True)
                    purged += len(batch)
                except Conflict:
                    logger.info("the purge of %d deleted rows waits for an answer to end", len(batch))
    return purged


PURGING = PurgePart(
    clear=lambda trace, hits: windows_scrub(
        user_id=trace.user_id, memory_ids=trace.ids, message_ids=trace.messages
    ),
    counts={"memory.links": lambda trace: edges_of(trace.user_id, trace.ids).count()},
)
