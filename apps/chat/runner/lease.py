"""Who runs a conversation: one process at a time, for as long as it keeps extending its lease.

All functions are synchronous and meant for the database pool. A process that was away for longer than its lease
finds it gone and must not write any more: every write goes through `lease_extend`, which then raises LeaseLost.
"""

import os
import secrets
import socket
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from apps.chat.models import Conversation

LEASE = timedelta(seconds=15)
RESERVE = 1000
"""Sequence numbers are reserved in blocks, so that those handed out but not stored at a crash never come again."""

PROCESS = f"{socket.gethostname()[:24]}-{os.getpid()}-{secrets.token_hex(4)}"
"""The name of this process as runner; new at every start."""


class LeaseLost(Exception):
    """Another process has taken the conversation over, or it was deleted; stop writing to it."""


def lease_free(prefix: str = "") -> Q:
    """Conversations that nobody runs: given back, or the lease has run out; none that is being deleted. A lease that
    reaches further ahead than any living process writes is from before the clock was set back. `prefix` leads to the
    conversation ("conversation__")."""
    now = timezone.now()
    until = f"{prefix}lease_until"
    over = Q(**{f"{until}__lt": now}) | Q(**{f"{until}__gt": now + 4 * LEASE})
    return (Q(**{f"{prefix}runner": ""}) | over) & Q(**{f"{prefix}deleted_at": None})


def lease_take(conversation_id: UUID, runner: str) -> tuple[int, int] | None:
    """The first and the last number of a fresh block of sequence numbers, or None when another one runs it."""
    now = timezone.now()
    free = lease_free() | Q(runner=runner)
    with transaction.atomic():
        taken = (
            Conversation.objects.unscoped()
            .filter(free, id=conversation_id)
            .update(runner=runner, lease_until=now + LEASE, last_seq=F("last_seq") + RESERVE)
        )
        if not taken:
            return None
        last = Conversation.objects.unscoped().values_list("last_seq", flat=True).get(id=conversation_id)
    return last - RESERVE + 1, last


def lease_extend(conversation_id: UUID, runner: str, **values: int) -> None:
    """Extends the lease, setting `stored_seq` or `last_seq` on the way. Raises LeaseLost."""
    now = timezone.now()
    held = Conversation.objects.unscoped().filter(id=conversation_id, runner=runner)
    if not held.update(lease_until=now + LEASE, **values):
        raise LeaseLost(str(conversation_id))


def lease_held(conversation_id: UUID, runner: str) -> bool:
    """Whether the conversation is there and this runner's."""
    return Conversation.objects.unscoped().filter(id=conversation_id, runner=runner).exists()


def lease_release(conversation_id: UUID, runner: str, last_seq: int) -> None:
    """Gives the conversation back; numbers above `last_seq` were never handed out. Call it inside a transaction."""
    held = Conversation.objects.unscoped().filter(id=conversation_id, runner=runner)
    held.update(runner="", lease_until=None, last_seq=last_seq)
