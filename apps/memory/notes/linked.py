"""The best linked notes of a user, as a picture shows them."""

from collections import defaultdict
from uuid import UUID

from apps.memory.models import MemoryEdge, Status

from .selectors import has_tag

MAX_LINKS = 3_000
"""The newest links among which the best linked notes are found."""
MAX_NOTES = 144
"""A picture of more cannot be read; what is further away is shown around another note."""
STEP = 48
"""It begins with so many, and has so many more each time."""
SHOWN = (Status.ACTIVE, Status.SUPERSEDED)


def best_linked(
    user_id: UUID, *, most: int = MAX_NOTES, kind: str = "", tag: str = ""
) -> tuple[list[UUID], int]:
    """The ids of the best linked notes, each followed by what it is linked to, and how many have links at all, as far as they were
    looked at. With a kind or a tag both ends of a link have it."""
    edges = MemoryEdge.objects.for_user(user_id).filter(
        source__status__in=SHOWN, target__status__in=SHOWN
    )
    if kind:
        edges = edges.filter(source__kind=kind, target__kind=kind)
    if tag:
        edges = edges.filter(has_tag(tag, "source__"), has_tag(tag, "target__"))
    near: dict[UUID, set[UUID]] = defaultdict(set)
    for source, target in edges.order_by("-pk").values_list("source_id", "target_id")[:MAX_LINKS]:
        near[source].add(target)
        near[target].add(source)
    return _spread(near, most), len(near)


def _spread(near: dict[UUID, set[UUID]], most: int) -> list[UUID]:
    """From the best linked note outwards, then from the best of the rest, until there are enough. The beginning of a longer list
    is a shorter one, but for notes that did not fit into it with all that is linked to them."""
    weight = {key: (-len(others), key) for key, others in near.items()}
    chosen: dict[UUID, None] = {}
    for start in sorted(near, key=weight.__getitem__):
        if start in chosen or (chosen and len(chosen) + len(near[start]) >= most):
            continue
        waiting = [start]
        while waiting and len(chosen) < most:
            key = waiting.pop(0)
            if key not in chosen:
                chosen[key] = None
                waiting += sorted(near[key] - chosen.keys(), key=weight.__getitem__)
    return list(chosen)
