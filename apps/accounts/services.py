"""Every write about accounts."""

import hmac
import logging
import secrets
from collections.abc import Collection, Iterable
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone

from apps.accounts.access import TOKEN_PREFIX, token_digest
from apps.accounts.choices import PUT_AWAY, time_zones
from apps.accounts.credentials import access_changed
from apps.accounts.models import APIToken, Preferences, Scope, User
from apps.accounts.selectors import any_user_exists, preferences_for, tokens_kept
from apps.core.db.writing import in_slices, lock_for_all, writing_for
from apps.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from apps.core.jobs.fair import one_by_one
from apps.core.models import InstanceState
from apps.core.registries import account_deleters, batch_deleters
from apps.core.text import clean_text

logger = logging.getLogger(__name__)

TOKENS_PER_USER = 100
ACCOUNTS = "accounts"
"""The lock of what holds for all accounts together: names, the last superuser, the first user."""


@transaction.atomic
def user_create(*, username: str, password: str, superuser: bool = False, time_zone: str = "") -> User:
    """A new user with preferences. Raises InvalidInput (weak password, bad name) or Conflict (name taken).

    A time zone that is none is passed over: it is a guess of the browser's, not somebody's choice.
    """
    user = User(username=username, is_superuser=superuser, is_staff=superuser)
    _set_password(user, password)
    lock_for_all(ACCOUNTS)
    try:
        user.full_clean(exclude=["password"], validate_unique=False)
    except ValidationError as error:
        raise InvalidInput("; ".join(error.messages), field="username") from error
    # As it is stored: in one form (NFKC), which two spellings may share.
    if User.objects.filter(username__iexact=user.username).exists():
        raise Conflict("That name is taken.", code="name_taken", field="username")
    user.save(force_insert=True)
    known = time_zone in dict(time_zones())
    with writing_for(user.pk), transaction.atomic():
        Preferences.objects.create(user=user, **({"time_zone": time_zone} if known else {}))
    return user


def user_set_password(*, user: User, password: str, revoke_tokens: bool) -> int:
    """Set a new password, which signs out every other session; how many API tokens were revoked with it. Raises
    InvalidInput where it is weak."""
    with writing_for(user.pk), transaction.atomic():
        _set_password(user, password)
        user.save(update_fields=["password"])
        access_changed()
        return tokens_revoke(user_id=user.pk) if revoke_tokens else 0


@transaction.atomic
def user_set_active(*, user: User, active: bool) -> None:
    """Let a user in or keep them out; their data stays. The last superuser stays active."""
    user_check_access(user=user, active=active, superuser=user.is_superuser)
    user.is_active = active
    user.save(update_fields=["is_active"])
    access_changed()


def user_check_access(*, user: User, active: bool, superuser: bool) -> None:
    """Raises Conflict where the account may not become so: the last superuser stays one that is active, and an account that is
    being deleted stays out. Call it in the transaction that writes."""
    if not (active and superuser):
        _keep_one_superuser([user])
    if user.leaving_at is not None:
        raise Conflict("This account is being deleted.", code="leaving")


def users_check_going(users: Collection[User]) -> None:
    """Raises Conflict where no superuser would be left to those who stay."""
    if User.objects.exclude(pk__in=[user.pk for user in users]).exists():
        _keep_one_superuser(users)


def user_delete(*, user: User) -> None:
    """Delete the account and everything that belongs to it. The last superuser cannot go while others remain.

    The user is out at once. What they have most of is removed slice by slice, so that others can write meanwhile, then
    the rest in one transaction. What a crash leaves in between a sweep finishes.
    """
    with writing_for(user.pk):
        with transaction.atomic():
            if user.leaving_at is None:
                users_check_going([user])
                user.is_active, user.leaving_at = False, timezone.now()
                user.save(update_fields=["is_active", "leaving_at"])
                access_changed()
        for delete_batch in batch_deleters.values():
            in_slices(partial(delete_batch, user.pk))
        with transaction.atomic():
            for delete in account_deleters.values():
                delete(user.pk)
            user.delete()


def users_delete_pending() -> None:
    """Sweep: finishes what a crash left of a deletion."""
    one_by_one(User.objects.exclude(leaving_at=None), lambda user: user_delete(user=user))


def users_lock(user_ids: Iterable[UUID]) -> None:
    """Hold these users' rows until the transaction ends, so that what it counts of theirs nobody else adds to meanwhile."""
    rows = User.objects.select_for_update(no_key=True).filter(pk__in=set(user_ids))
    list(rows.order_by("pk").values_list("pk"))


def _keep_one_superuser(users: Collection[User]) -> None:
    """Raises Conflict where there is no superuser but among these."""
    lock_for_all(ACCOUNTS)
    keys = [user.pk for user in users]
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk__in=keys)
    if any(user.is_superuser for user in users) and not others.exists():
        raise Conflict(
            "The last superuser must stay while there are other users.", code="last_superuser"
        )


def _set_password(user: User, password: str) -> None:
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise InvalidInput(" ".join(error.messages), code="weak_password", field="password") from error
    user.set_password(password)


@transaction.atomic
def preferences_update(*, user_id: UUID, **changes: Any) -> Preferences:
    """Change the named preferences. Raises InvalidInput, naming the field, for a value that does not fit."""
    preferences, defaults = preferences_for(user_id), Preferences()
    for name, value in changes.items():
        if type(value) is not type(getattr(defaults, name)):
            raise InvalidInput(f"{name} has the wrong type.", code="wrong_type", field=name)
        setattr(preferences, name, value)
    try:
        preferences.full_clean(exclude=["user"], validate_unique=False)
    except ValidationError as error:
        field = next(iter(error.message_dict))
        raise InvalidInput(error.message_dict[field][0], field=field) from error
    preferences.save()
    return preferences


@transaction.atomic
def notice_put(*, user_id: UUID, name: str, away: bool) -> None:
    """Puts a notice away or brings it back. NotFound for a name that is not in PUT_AWAY."""
    if name not in PUT_AWAY:
        raise NotFound("There is no such notice.")
    put = {key: at for key, at in preferences_for(user_id).put_away.items() if key != name}
    if away:
        put[name] = timezone.now().isoformat()
    preferences_update(user_id=user_id, put_away=put)


@transaction.atomic
def token_create(
    *,
    user: User,
    name: str,
    scopes: Collection[str],
    expires_at: datetime | None = None,
    **allowed: Any,
) -> tuple[APIToken, str]:
    """A new API token and its secret (`izzy_…`), which is not stored and cannot be shown again.

    `allowed` are further fields: `reaches_out`, `person_answers`, `proxy_memory`, `proxy_daily_tokens`.
    """
    name = clean_text(name, field="name", max_chars=80)
    known = {str(scope) for scope in Scope}
    if not scopes or not set(scopes) <= known:
        raise InvalidInput(f"Scopes are {', '.join(sorted(known))}.", field="scopes")
    if Scope.ADMIN in scopes and not user.is_superuser:
        raise InvalidInput("Only a superuser's token may have the scope admin.", field="scopes")
    if tokens_kept(user.pk).count() >= TOKENS_PER_USER:
        raise Conflict(
            f"There are {TOKENS_PER_USER} tokens already; revoke some first.", code="too_many_tokens"
        )
    secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
    token = APIToken.objects.create(
        user=user,
        name=name,
        hint=secret[:9],
        digest=token_digest(secret),
        scopes=sorted(set(scopes)),
        expires_at=expires_at,
        **allowed,
    )
    return token, secret


@transaction.atomic
def token_revoke(*, user_id: UUID, token_id: UUID) -> None:
    """Make a token invalid at once and for good. Raises NotFound for a foreign or unknown one."""
    if not tokens_kept(user_id).filter(pk=token_id).update(revoked_at=timezone.now()):
        raise NotFound("There is no such token.")
    access_changed()


@transaction.atomic
def tokens_revoke(*, user_id: UUID) -> int:
    """Make all of a user's tokens invalid, as `token_revoke` does one; how many there were."""
    access_changed()
    return tokens_kept(user_id).update(revoked_at=timezone.now())


def random_password() -> str:
    """A password to hand over: 16 random letters and digits in four groups."""
    alphabet = "abcdefghjkmnpqrstuvwxyz23456789"
    return "-".join("".join(secrets.choice(alphabet) for _ in range(4)) for _ in range(4))


SETUP = "setup_token"


@transaction.atomic
def setup_token_renew() -> str:
    """A new one-time token, of which only the hash is kept; earlier ones end."""
    token = secrets.token_urlsafe(24)
    lock_for_all(ACCOUNTS)
    InstanceState.objects.update_or_create(
        key=SETUP, defaults={"value": {"sha256": token_digest(token)}}
    )
    return token


@transaction.atomic
def setup_complete(*, token: str, username: str, password: str, time_zone: str = "") -> User:
    """The first user, a superuser. Raises Conflict where there is one already, Forbidden for a wrong token."""
    lock_for_all(ACCOUNTS)
    state = InstanceState.objects.filter(key=SETUP).first()  # the link works once
    if any_user_exists():
        raise Conflict("Izzy is set up already. Sign in instead.", code="already_set_up")
    expected = str(state.value.get("sha256", "")) if state else ""
    if not expected or not hmac.compare_digest(expected, token_digest(token)):
        message = "This set-up link is not valid. Use the one that Izzy printed when it last started."
        raise Forbidden(message, code="setup_token", field="token")
    user = user_create(username=username, password=password, superuser=True, time_zone=time_zone)
    InstanceState.objects.filter(key=SETUP).delete()
    return user


def setup_note(address: str) -> str:
    """Text that `serve` prints while no user exists. The token is a fragment: it reaches no log."""
    if any_user_exists():
        return ""
    return f"Set it up here (the link works once):\n\n    {address}/setup/#{setup_token_renew()}"
