"""Reads of purges."""

from datetime import datetime
from uuid import UUID

from apps.core.errors import NotFound
from apps.core.purging.disk import scrubbed_at
from apps.memory.models import PurgeReceipt


def receipt_get(user_id: UUID, receipt_id: UUID) -> PurgeReceipt:
    """A receipt of the user; NotFound."""
    receipt = PurgeReceipt.objects.for_user(user_id).filter(pk=receipt_id).first()
    if receipt is None:
        raise NotFound
    return receipt


def off_disk_at(receipt: PurgeReceipt) -> datetime | None:
    """When the file was cleaned after this purge; None while the worker has yet to do it."""
    done = scrubbed_at()
    return done if receipt.purged_at and done and done >= receipt.purged_at else None
