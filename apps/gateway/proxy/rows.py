"""Keeps the rows of the proxy bounded; those of sessions that nobody goes on with go with them."""

from uuid import UUID

from django.db.models import Count

from apps.core.db.writing import writing_for
from apps.gateway.models import ProxyTurn

MOST_OF_USER = 50_000
"""The number of turns that are kept of a user, the newest: each is at most a few kilobytes."""
SLICE = 1_000


def turns_prune() -> int:
    """Sweep: removes the oldest turns of users who have more than MOST_OF_USER; how many."""
    removed = 0
    counts = ProxyTurn.objects.unscoped().order_by().values_list("user_id").annotate(turns=Count("pk"))
    for user_id, number in counts.filter(turns__gt=MOST_OF_USER):
        turns = ProxyTurn.objects.for_user(user_id)
        with writing_for(user_id):
            for start in range(0, number - MOST_OF_USER, SLICE):
                some = min(SLICE, number - MOST_OF_USER - start)
                oldest = list(turns.order_by("pk").values_list("pk", flat=True)[:some])
                removed += turns.filter(pk__in=oldest).delete()[0]
    return removed


def user_turns_thin(user_id: UUID) -> bool:
    """Removes a thousand of a user's turns; whether there may be more."""
    keys = list(ProxyTurn.objects.for_user(user_id).values_list("pk", flat=True)[:SLICE])
    ProxyTurn.objects.for_user(user_id).filter(pk__in=keys).delete()
    return len(keys) == SLICE
