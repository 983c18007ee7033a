"""Figures about a user's memory."""

from typing import Any
from uuid import UUID

from django.db.models import Count, Q

from apps.memory.models import PRIORITY_FLOOR, Memory, MemoryEdge

from .notes import current_cycle, present_priority


def memory_stats(user_id: UUID) -> dict[str, Any]:
    """Counts of notes: in all, by status, tier, kind and source; faded, never used, links, and the decay cycle."""
    cycle = current_cycle(user_id)
    notes = Memory.objects.for_user(user_id)
    totals = notes.annotate(priority_now=present_priority(cycle)).aggregate(
        total=Count("pk"),
        faded=Count("pk", filter=Q(priority_now__lt=PRIORITY_FLOOR)),
        never_used=Count("pk", filter=Q(access_count=0)),
    )
    return {
        **totals,
        "deleted": Memory.objects.restorable(user_id).count(),
        "links": MemoryEdge.objects.for_user(user_id).count(),
        "cycle": cycle,
        "by_status": _counts(user_id, "status"),
        "by_tier": _counts(user_id, "tier"),
        "by_kind": _counts(user_id, "kind"),
        "by_source": _counts(user_id, "origin"),
    }


def _counts(user_id: UUID, field: str) -> dict[str, int]:
    rows = Memory.objects.for_user(user_id).values_list(field).annotate(count=Count("pk"))
    return {str(value): count for value, count in rows.order_by("-count", field)}
