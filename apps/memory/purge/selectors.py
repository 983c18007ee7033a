"""Reads of purges."""

from uuid import UUID

from apps.core.errors import NotFound
from apps.memory.models import PurgeReceipt


def receipt_get(user_id: UUID, receipt_id: UUID) -> PurgeReceipt:
    """A receipt of the user; NotFound."""
    receipt = PurgeReceipt.objects.for_user(user_id).filter(pk=receipt_id).first()
    if receipt is None:
        raise NotFound
    return receipt
