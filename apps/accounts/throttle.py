"""Sign-in throttling: failures counted in the database, so that all processes see the same."""

import hashlib
import hmac
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Network, ip_address

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from apps.accounts.models import SignInAttempt
from apps.core.errors import Throttled

WINDOW = timedelta(minutes=15)
PER_NAME_AND_ADDRESS = 5
PER_ADDRESS = 30
PER_NAME = 50
KEPT = timedelta(days=1)


@transaction.atomic
def attempt_begin(*, name: str, address: str) -> None:
    """Count an attempt before its password is looked at. One after the other: parallel guesses do not slip through.

    A household's IPv6 addresses, of which it has more than can be counted, are one.

    Raises Throttled after 5 failures within 15 minutes for one name from one address, 30 from one address
    (guessing over many names), 50 for one name (guessing from many addresses).
    """
    if not settings.IZZY_THROTTLE:
        return
    name_hash, address_hash = _hash(name.casefold()), _hash(_place(address))
    recent = SignInAttempt.objects.filter(at__gt=timezone.now() - WINDOW)
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


def attempt_succeeded(*, name: str, address: str) -> None:
    SignInAttempt.objects.filter(
        name_hash=_hash(name.casefold()), address_hash=_hash(_place(address))
    ).delete()


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
