"""The figures of quality, and the notes behind each."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from apps.memory.capture.selectors import capture_figures
from apps.memory.models import PRIORITY_FLOOR, Memory, MemoryFile, Status, Trust
from apps.memory.selectors import current_cycle, memories_by_id, open_contradictions, present_priority
from apps.memory.similarity import SAME, differs
from apps.search.documents import Source
from apps.search.selectors import alike_pairs

UNUSED_AFTER = timedelta(days=7)
"""A younger note has had no chance to be of use yet."""
SHOWN = 100


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two active notes that say the same, the older one first."""

    one: Memory
    two: Memory
    similarity: float


def memory_quality(user_id: UUID) -> dict[str, Any]:
    """The figures, JSON-ready; shares are of 1, None where nothing was counted.

    `duplicates` are pairs of active notes, `never_retrieved` active notes older than a week that neither a search nor
    the chat has brought up, `gated_out` the share of read passages in which the gate found nothing worth keeping.
    """
    counts = _counts(user_id)
    capture = capture_figures(user_id)
    judged, passed = capture["gated"], capture["passed"]
    return {
        "active": counts["active"],
        "duplicates": len(duplicate_ids(user_id)),
        "contradictions_open": open_contradictions(user_id).count(),
        "never_retrieved": never_retrieved(user_id).count(),
        "faded": faded(user_id).count(),
        "pending_review": counts["pending"],
        "archived": counts["archived"],
        "untrusted": counts["untrusted"],
        "untrusted_share": _share(counts["untrusted"], counts["total"]),
        "gated_out": _share(judged - passed, judged),
        "tokens_per_memory": capture["tokens_per_memory"],
        "cost_per_memory_usd": capture["cost_per_memory"],
        "injected_again": capture["injected_again"],
        "files": counts["files"],
        "file_bytes": counts["file_bytes"],
    }


def _counts(user_id: UUID) -> dict[str, int]:
    files = MemoryFile.objects.for_user(user_id).aggregate(
        files=Count("pk"), file_bytes=Sum("size", default=0)
    )
    notes = Memory.objects.for_user(user_id).aggregate(
        total=Count("pk"),
        active=Count("pk", filter=Q(status=Status.ACTIVE)),
        pending=Count("pk", filter=Q(status=Status.PENDING)),
        archived=Count("pk", filter=Q(status=Status.ARCHIVED)),
        untrusted=Count("pk", filter=Q(trust=Trust.UNTRUSTED)),
    )
    return {**notes, **files}


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def active(user_id: UUID) -> QuerySet[Memory]:
    return Memory.objects.for_user(user_id).filter(status=Status.ACTIVE)


def never_retrieved(user_id: UUID) -> QuerySet[Memory]:
    """Active notes older than a week that were never brought up, oldest first."""
    since = timezone.now() - UNUSED_AFTER
    return active(user_id).filter(access_count=0, created_at__lt=since).order_by("created_at")


def faded(user_id: UUID) -> QuerySet[Memory]:
    """Active notes whose priority is below the floor by now, oldest first."""
    notes = active(user_id).annotate(priority_now=present_priority(current_cycle(user_id)))
    return notes.filter(priority_now__lt=PRIORITY_FLOOR).order_by("created_at")


def duplicate_ids(user_id: UUID) -> list[tuple[UUID, UUID, float]]:
    """Pairs of active notes that say the same, the most alike first: calibrated similarity of 0.85 and more, and no
    difference in numbers, names or between yes and no."""
    contents = dict(active(user_id).values_list("pk", "content"))
    pairs = alike_pairs(user_id, source=Source.MEMORY, among=contents, at_least=SAME)
    return [
        pair
        for pair in pairs
        if pair[0] in contents and pair[1] in contents and not differs(contents[pair[0]], contents[pair[1]])
    ]


def duplicates(user_id: UUID, limit: int = SHOWN) -> list[Duplicate]:
    """The first of these pairs, with their notes."""
    pairs = duplicate_ids(user_id)[:limit]
    notes = memories_by_id(user_id, {key for one, two, _ in pairs for key in (one, two)})
    found = []
    for one, two, similarity in pairs:
        if one in notes and two in notes:
            older, newer = sorted((notes[one], notes[two]), key=lambda note: note.created_at)
            found.append(Duplicate(older, newer, similarity))
    return found
