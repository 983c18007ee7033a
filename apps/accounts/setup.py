"""First-run set-up: whoever holds the link printed on the console makes the first account, the superuser's."""

import hashlib
import hmac
import secrets

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.selectors import any_user_exists
from apps.accounts.services import user_create
from apps.core.errors import Conflict, Forbidden
from apps.core.models import InstanceState

STATE = "setup_token"


@transaction.atomic
def setup_token_renew() -> str:
    """A new one-time token, of which only the hash is kept; earlier ones end."""
    token = secrets.token_urlsafe(24)
    InstanceState.objects.update_or_create(key=STATE, defaults={"value": {"sha256": _digest(token)}})
    return token


@transaction.atomic
def setup_complete(*, token: str, username: str, password: str, time_zone: str = "") -> User:
    """The first user, a superuser. Raises Conflict where there is one already, Forbidden for a wrong token."""
    state = InstanceState.objects.select_for_update().filter(key=STATE).first()  # the link works once
    if any_user_exists():
        raise Conflict("Izzy is set up already. Sign in instead.", code="already_set_up")
    expected = str(state.value.get("sha256", "")) if state else ""
    if not expected or not hmac.compare_digest(expected, _digest(token)):
        message = "This set-up link is not valid. Use the one that Izzy printed when it last started."
        raise Forbidden(message, code="setup_token", field="token")
    user = user_create(username=username, password=password, superuser=True, time_zone=time_zone)
    InstanceState.objects.filter(key=STATE).delete()
    return user


def setup_note(address: str) -> str:
    """Text that `serve` prints while no user exists. The token is a fragment: it reaches no log."""
    if any_user_exists():
        return ""
    return f"Set it up here (the link works once):\n\n    {address}/setup/#{setup_token_renew()}"


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
