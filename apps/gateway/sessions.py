"""Sessions of other programs: found by their own names, and forgotten a while after they were last heard of."""

from datetime import timedelta
from uuid import UUID

from django.utils import timezone

from apps.accounts.models import APIToken
from apps.core.db.writing import users_of
from apps.core.text import clean_text
from apps.gateway.models import ClientSession

KEPT = timedelta(days=90)
MAX_KEY_CHARS = 200
SLICE = 1_000


def session_for(
    *,
    user_id: UUID,
    surface: ClientSession.Surface,
    client: str,
    key: object,
    token: APIToken | None = None,
) -> ClientSession:
    """The user's session of that name, made where it is new. InvalidInput for a name that is none.

    A name that another user's session has is as good as any.
    """
    name = clean_text(key, field="session", max_chars=MAX_KEY_CHARS)
    session, _ = ClientSession.objects.for_user(user_id).get_or_create(
        user_id=user_id, surface=surface, client=client, key=name, defaults={"token": token}
    )
    return session


def session_locked(session: ClientSession) -> ClientSession:
    """The session's row as it is now, locked. Call it inside a transaction."""
    return ClientSession.objects.owned_by(session.user_id).select_for_update().get(pk=session.pk)


def sessions_prune() -> int:
    """Sweep: removes sessions that were not heard of for KEPT; how many."""
    old = ClientSession.objects.unscoped().filter(updated_at__lt=timezone.now() - KEPT)
    removed = 0
    for _, own in users_of(old):
        keys = list(own.values_list("pk", flat=True)[:SLICE])
        ClientSession.objects.unscoped().filter(pk__in=keys).delete()
        removed += len(keys)
    return removed
