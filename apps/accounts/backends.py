"""The one way in with a password, wherever it is typed, and its throttle.

Failures are counted in the database, so that all processes see the same. A browser in which a user has signed in keeps a
signed cookie (the device cookie of OWASP) and is counted apart for that user, so that strangers who guess at the name do
not close the door to its owner.
"""

import hashlib
import hmac
import secrets
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Network, ip_address
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.core import signing
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.crypto import constant_time_compare, salted_hmac

from apps.accounts.models import SignInAttempt, User
from apps.core.db.prepared import prepared
from apps.core.db.writing import lock_for_all
from apps.core.errors import Throttled
from apps.core.http.clients import client_ip


class ThrottledBackend(ModelBackend):
    """Django's backend behind the sign-in throttle: raises Throttled where too many attempts failed."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        if username is None or password is None:
            return None
        address = client_ip(request) if request else ""
        browser = known_browser(request, username) if request else ""
        attempt_begin(name=username, address=address, browser=browser)
        user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is not None:
            attempt_succeeded(name=username, address=address, browser=browser)
        return user

    def get_user(self, user_id: UUID) -> User | None:
        return _signed_in.first(user_id)


@prepared
def _signed_in(user_id: UUID) -> QuerySet[User]:
    return User.objects.filter(pk=user_id, is_active=True)


WINDOW = timedelta(minutes=15)
PER_NAME_AND_ADDRESS = 5
PER_ADDRESS = 30
PER_NAME = 50
PER_BROWSER = 5
KEPT = timedelta(days=1)
BROWSER_COOKIE = "izzy_browser"
BROWSER_KNOWN = timedelta(days=365)


@transaction.atomic
def attempt_begin(*, name: str, address: str, browser: str = "") -> None:
    """Count an attempt before its password is looked at. One after the other: parallel guesses do not slip through.

    A household's IPv6 addresses, of which it has more than can be counted, are one. `browser` is what `known_browser` gave:
    its first 5 attempts within 15 minutes count for itself alone, further ones as anybody's.

    Raises Throttled after 5 failures within 15 minutes for one name from one address, 30 from one address
    (guessing over many names), 50 for one name (guessing from many addresses).
    """
    if not settings.IZZY_THROTTLE:
        return
    name_hash, address_hash = _hash(name.casefold()), _hash(_place(address))
    lock_for_all("sign-in")
    now = timezone.now()
    # Those of later than now, but for what clocks of several hosts differ, were made before the clock was set right.
    recent = SignInAttempt.objects.filter(at__range=(now - WINDOW, now + WINDOW))
    if browser:
        own = _hash(browser)
        if recent.filter(name_hash=own).count() < PER_BROWSER:
            SignInAttempt.objects.create(name_hash=own, address_hash=own)
            return
    from_address = recent.filter(address_hash=address_hash)
    if (
        from_address.filter(name_hash=name_hash).count() >= PER_NAME_AND_ADDRESS
        or from_address.count() >= PER_ADDRESS
        or recent.filter(name_hash=name_hash).count() >= PER_NAME
    ):
        minutes = int(WINDOW.total_seconds() // 60)
        raise Throttled(
            f"Too many failed attempts. Try again in {minutes} minutes.", code="sign_in_throttled"
        )
    SignInAttempt.objects.create(name_hash=name_hash, address_hash=address_hash)


def attempt_succeeded(*, name: str, address: str, browser: str = "") -> None:
    SignInAttempt.objects.filter(
        name_hash=_hash(name.casefold()), address_hash=_hash(_place(address))
    ).delete()
    if browser:
        SignInAttempt.objects.filter(name_hash=_hash(browser)).delete()


def browser_remember(response: HttpResponse, user: User) -> None:
    """Has the browser that gets this answer known as one in which the user signed in: for a year, or until the password
    changes. Whoever steals the cookie may guess five times more per quarter of an hour, and enters with it nowhere."""
    known = {"user": str(user.pk), "id": secrets.token_urlsafe(12), "password": _password_mark(user)}
    response.set_cookie(
        BROWSER_COOKIE,
        signing.dumps(known, salt=BROWSER_COOKIE),
        max_age=BROWSER_KNOWN,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )


def known_browser(request: HttpRequest, name: str) -> str:
    """A name for the browser where the user of that name has signed in with it under the present password, else ""."""
    try:
        known = signing.loads(
            request.COOKIES.get(BROWSER_COOKIE, ""), salt=BROWSER_COOKIE, max_age=BROWSER_KNOWN
        )
    except signing.BadSignature:
        return ""
    user = User.objects.filter(pk=known["user"]).first()
    if user is None or user.username.casefold() != name.casefold():
        return ""
    return (
        f"browser {known['id']}"
        if constant_time_compare(known["password"], _password_mark(user))
        else ""
    )


def _password_mark(user: User) -> str:
    return salted_hmac(BROWSER_COOKIE, user.get_session_auth_hash()).hexdigest()[:16]


def attempts_prune() -> None:
    """Sweep: forget attempts older than a day."""
    SignInAttempt.objects.filter(at__lt=timezone.now() - KEPT).delete()


def _place(address: str) -> str:
    """The address, or of an IPv6 address the network (/64) that its owner chooses from freely."""
    try:
        found = ip_address(address)
    except ValueError:
        return address
    if isinstance(found, IPv4Address):
        return address
    return str(found.ipv4_mapped or IPv6Network((int(found) >> 64 << 64, 64)))


def _hash(value: str) -> str:
    return hmac.new(
        settings.SECRET_KEY.encode(), value.encode("utf-8", "replace"), hashlib.sha256
    ).hexdigest()
