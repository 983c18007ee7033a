"""How good a memory is: its figures, and the notes behind each."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Sum
from django.utils import timezone

from apps.memory.capture.selectors import capture_figures
from apps.memory.models import (
    PRIORITY_FLOOR,
    Memory,
    MemoryFile,
    OccasionsBy,
    OccasionsWait,
    Status,
    Trust,
)
from apps.memory.notes.selectors import (
    current_cycle,
    memories_by_id,
    open_contradictions,
    present_priority,
)
from apps.memory.similarity import SAME, differs
from apps.search.documents import Source
from apps.search.selectors import alike_pairs

UNUSED_AFTER = timedelta(days=7)
"""A younger note has had no chance to be of use yet."""
AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Duplicate:
    """Two active notes that say the same, the older one first."""

    one: Memory
    two: Memory
    similarity: float


Pairs = list[tuple[UUID, UUID, float]]
"""Ids of two notes, and how alike they are."""


def memory_quality(
    user_id: UUID, *, capture: dict[str, Any] | None = None, pairs: Pairs | None = None
) -> dict[str, Any]:
    """The figures, JSON-ready; shares are of 1, None where nothing was counted. `capture` (`capture_figures`) and `pairs`
    (`duplicate_ids`) are looked up where the caller has them not.

    `duplicates` are pairs of active notes. Of active notes older than a week, `never_retrieved` are those that neither a search nor
    the chat has found, `never_used` those that were never brought up nor opened. `gated_out` is the share of read passages in which the gate found nothing worth keeping.
    `occasions_by_…` are active notes by whose their occasions are, `occasions_waiting` those about which no model was asked.
    """
    is_active = Q(status=Status.ACTIVE)
    notes = Memory.objects.for_user(user_id)
    counts = notes.annotate(priority_now=present_priority(current_cycle(user_id))).aggregate(
        total=Count("pk"),
        active=Count("pk", filter=is_active),
        pending_review=Count("pk", filter=Q(status=Status.PENDING)),
        archived=Count("pk", filter=Q(status=Status.ARCHIVED)),
        untrusted=Count("pk", filter=Q(trust=Trust.UNTRUSTED)),
        never_retrieved=Count("pk", filter=is_active & _old() & Q(access_count=0)),
        never_used=Count("pk", filter=is_active & _old() & Q(use_count=0)),
        faded=Count("pk", filter=is_active & Q(priority_now__lt=PRIORITY_FLOOR)),
        without_occasions=Count("pk", filter=is_active & Q(occasions=[])),
        **{
            f"occasions_by_{by}": Count("pk", filter=is_active & Q(occasions_by=by))
            for by in (OccasionsBy.MODEL, OccasionsBy.RULES, OccasionsBy.USER)
        },
        occasions_waiting=Count("pk", filter=Q(occasions_wait=OccasionsWait.MODEL)),
    )
    capture = capture_figures(user_id) if capture is None else capture
    pairs = duplicate_ids(user_id) if pairs is None else pairs
    judged, passed = capture["gated"], capture["passed"]
    return {
        "duplicates": len(pairs),
        "contradictions_open": open_contradictions(user_id).count(),
        "untrusted_share": _share(counts["untrusted"], counts.pop("total")),
        **counts,
        "gated_out": _share(judged - passed, judged),
        "tokens_per_memory": capture["tokens_per_memory"],
        "cost_per_memory_usd": capture["cost_per_memory"],
        "injected_again": capture["injected_again"],
        **MemoryFile.objects.for_user(user_id).aggregate(
            files=Count("pk"), file_bytes=Sum("size", default=0)
        ),
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def active(user_id: UUID) -> QuerySet[Memory]:
    """The notes that hold."""
    return Memory.objects.for_user(user_id).filter(status=Status.ACTIVE)


def _old() -> Q:
    return Q(created_at__lt=timezone.now() - UNUSED_AFTER)


def never_used(user_id: UUID) -> QuerySet[Memory]:
    """Active notes older than a week that were never brought up nor opened, oldest first."""
    return active(user_id).filter(_old(), use_count=0).order_by("created_at", "pk")


def faded(user_id: UUID) -> QuerySet[Memory]:
    """Active notes whose priority is below the floor by now, oldest first."""
    notes = active(user_id).annotate(priority_now=present_priority(current_cycle(user_id)))
    return notes.filter(priority_now__lt=PRIORITY_FLOOR).order_by("created_at", "pk")


def without_occasions(user_id: UUID) -> QuerySet[Memory]:
    """Active notes that come up by their text alone, oldest first."""
    return active(user_id).filter(occasions=[]).order_by("created_at")


def duplicate_ids(user_id: UUID) -> Pairs:
    """Pairs of active notes that say the same, the most alike first: calibrated similarity of 0.85 and more, and no
    difference in numbers, names or between yes and no."""
    keys = set(active(user_id).values_list("pk", flat=True))
    pairs = alike_pairs(user_id, source=Source.MEMORY, among=keys, at_least=SAME)
    contents: dict[UUID, str] = {}
    wanted = sorted({key for one, two, _ in pairs for key in (one, two)})
    for start in range(0, len(wanted), AT_ONCE):
        some = Memory.objects.owned_by(user_id).filter(pk__in=wanted[start : start + AT_ONCE])
        contents |= dict(some.values_list("pk", "content"))
    return [
        (one, two, similarity)
        for one, two, similarity in pairs
        if {one, two} <= contents.keys() and not differs(contents[one], contents[two])
    ]


def duplicates(user_id: UUID, pairs: Iterable[tuple[UUID, UUID, float]]) -> list[Duplicate]:
    """Such pairs with their notes; one of which a note is not active any more is left out."""
    pairs = list(pairs)
    notes = memories_by_id(user_id, {key for one, two, _ in pairs for key in (one, two)})
    there = {key: note for key, note in notes.items() if note.status == Status.ACTIVE}
    found = []
    for one, two, similarity in pairs:
        if one in there and two in there:
            older, newer = sorted((there[one], there[two]), key=lambda note: note.created_at)
            found.append(Duplicate(older, newer, similarity))
    return found


MOST_USED = 5


def most_used(user_id: UUID) -> QuerySet[Memory]:
    """The active notes that were brought up or opened most often."""
    notes = active(user_id).filter(use_count__gt=0)
    return notes.order_by("-use_count", "-last_accessed", "-pk")[:MOST_USED]
