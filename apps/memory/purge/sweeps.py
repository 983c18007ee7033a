"""What the worker purges: what was deleted 30 days ago, and what an interrupted purge left."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from apps.core.errors import Conflict
from apps.memory.models import KEEP_DELETED, Memory, MemoryFile, Purged, PurgeReceipt, PurgeState

from .services import purge, purge_resume

logger = logging.getLogger(__name__)

BATCH = 25
STALE = timedelta(minutes=10)


def deleted_purge() -> int:
    """Purge the notes and files deleted 30 days ago or more, everywhere; returns how many.

    Messages stay: they are conversations, which have a deletion of their own. What an answer under way uses waits for
    the next time.
    """
    limit = timezone.now() - KEEP_DELETED
    notes = Memory.objects.all_deleted().filter(deleted_at__lte=limit).order_by("user_id", "deleted_at")
    files = MemoryFile.objects.all_deleted().filter(deleted_at__lte=limit).order_by("user_id", "deleted_at")
    purged = _purge_due(Purged.NOTE, list(notes.values_list("user_id", "pk")))
    return purged + _purge_due(Purged.FILE, list(files.values_list("user_id", "pk")))


def _purge_due(source: Purged, due: Sequence[tuple[UUID, UUID]]) -> int:
    by_user: dict[UUID, list[UUID]] = {}
    for user_id, key in due:
        by_user.setdefault(user_id, []).append(key)
    purged = 0
    for user_id, keys in by_user.items():
        for start in range(0, len(keys), BATCH):
            batch = keys[start : start + BATCH]
            try:
                purge(user_id=user_id, source=source, ids=batch, redact=False, by_sweep=True)
            except Conflict:
                logger.info("the purge of %d deleted rows waits for an answer to end", len(batch))
                continue
            purged += len(batch)
    return purged


def interrupted_resume() -> None:
    """The sweep: finish purges whose process died."""
    stale = PurgeReceipt.objects.unscoped().filter(
        state=PurgeState.RUNNING, started_at__lt=timezone.now() - STALE
    )
    for receipt in stale[:BATCH]:
        purge_resume(receipt)
