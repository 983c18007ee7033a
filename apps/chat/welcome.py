"""Whether a websocket that was let in may stay."""

from importlib import import_module
from uuid import UUID

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from apps.accounts.models import APIToken, User


def still_welcome(user_id: UUID, token: APIToken | None, session_key: str | None) -> bool:
    """Whether the user is active and the token valid, or the session alive and of the present password."""
    user = User.objects.filter(id=user_id, is_active=True).first()
    if user is None:
        return False
    if token is not None:
        row = APIToken.objects.for_user(user_id).filter(id=token.id).first()
        return row is not None and row.is_valid(timezone.now())
    if session_key is None:
        return True
    session = import_module(settings.SESSION_ENGINE).SessionStore(session_key)
    return constant_time_compare(session.get(HASH_SESSION_KEY, ""), user.get_session_auth_hash())
