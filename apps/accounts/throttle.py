"""Sign-in throttling: failures counted in the database, so that all processes see the same."""

import hashlib
import hmac
from datetime import timedelta

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

    Raises Throttled after 5 failures within 15 minutes for one name from one address, 30 from one address
    (guessing over many names), 50 for one name (guessing from many addresses).
    """
    if not settings.IZZY_THROTTLE:
        return
    name_hash, address_hash = _hash(name.casefold()), _hash(address)
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
    SignInAttempt.objects.filter(name_hash=_hash(name.casefold()), address_hash=_hash(address)).delete()


def attempts_prune() -> None:
    """Sweep: forget attempts older than a day."""
    SignInAttempt.objects.filter(at__lt=timezone.now() - KEPT).delete()


def _hash(value: str) -> str:
    return hmac.new(
        settings.SECRET_KEY.encode(), value.encode("utf-8", "replace"), hashlib.sha256
    ).hexdigest()
