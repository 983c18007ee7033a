"""Whether every host has the same keys: a session signed with one and a secret stored with one is read by all."""

import hashlib
import hmac

from django.conf import settings
from django.core.management.base import CommandError
from django.db import DatabaseError

from apps.core.db.pool import database_file
from apps.core.health import CheckResult
from apps.core.models import InstanceState

STATE = "keys"
"""InstanceState: name of the setting -> fingerprint of the key that the database was prepared with."""
HINT = (
    "Give every host the keys that the first one has, in the environment. If they were changed on purpose, run"
    " `manage.py prepare --accept-keys`: sessions end, and secrets stored before have to be entered again."
)


def fingerprints() -> dict[str, str]:
    """A short keyed hash of each key, which tells nothing about it but whether another is the same."""
    keys = {"IZZY_SECRET_KEY": settings.SECRET_KEY, "IZZY_SECRETS_KEY": settings.IZZY_SECRETS_KEY}
    return {
        name: hmac.new(key.encode(), f"izzy fingerprint {name}".encode(), hashlib.sha256).hexdigest()[
            :16
        ]
        for name, key in keys.items()
    }


def keys_differ() -> str:
    """A sentence where this process has other keys than those that the database was prepared with, else "". Only reads.

    A database in a file has one host, whose keys lie beside it: there nothing is compared.
    """
    if database_file() is not None:
        return ""
    known = InstanceState.objects.filter(key=STATE).values_list("value", flat=True).first()
    return _difference(known, fingerprints()) if known else ""


def keys_trouble(*, accept: bool = False) -> str:
    """As `keys_differ`, but remembers the keys where the database knows none yet, or with `accept`."""
    if database_file() is not None:
        return ""
    own = fingerprints()
    try:
        state, made = InstanceState.objects.get_or_create(key=STATE, defaults={"value": own})
    except DatabaseError:  # it is away, or not prepared yet: whoever asks it for more says so
        return ""
    if made or state.value == own:
        return ""
    if accept:
        state.value = own
        state.save()
        return ""
    return _difference(state.value, own)


def _difference(known: dict[str, str], own: dict[str, str]) -> str:
    names = " and ".join(name for name, value in own.items() if known.get(name) != value)
    if not names:
        return ""
    return (
        f"{names} of this process is not what the database was prepared with, on another host or before."
    )


def refuse_other_keys(*, accept: bool = False) -> None:
    """Raises CommandError where the keys are others; see `keys_trouble`."""
    if trouble := keys_trouble(accept=accept):
        raise CommandError(f"{trouble} {HINT}")


def check_keys() -> CheckResult:
    """Health check: this process has the keys that the database was prepared with."""
    if trouble := keys_trouble():
        return CheckResult(False, trouble, HINT)
    return CheckResult(True, "The keys are those that the database was prepared with.")
