"""Secrets encrypted at rest: Fernet, with a key that lies in the data directory and not in the database."""

import logging
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from cryptography.fernet import Fernet, InvalidToken
from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register
from django.db import transaction
from django.db.models import Q, QuerySet

from apps.accounts.models import Secret
from apps.core.db.prepared import prepared
from apps.core.health import IZZY, CheckResult

logger = logging.getLogger(__name__)

ENVIRONMENT = {"anthropic_api_key": "ANTHROPIC_API_KEY", "anthropic_base_url": "ANTHROPIC_BASE_URL"}
"""Instance secrets that a setting of the same meaning overrides."""

SCRUBBED_LENGTH = 8
KEY_PLACE = "IZZY_SECRETS_KEY, or secrets_key in the data directory,"
KEY_HINT = "Restore the key from the backup; without one, remove it and enter the stored secrets anew."


@transaction.atomic
def secret_set(*, name: str, value: str, user_id: UUID | None = None) -> None:
    """Keep `value` under `name` for a user or, without one, for the instance. An empty value removes it."""
    if not value:
        _rows(name, user_id).delete()
        return
    ciphertext = Fernet(settings.IZZY_SECRETS_KEY).encrypt(value.encode()).decode()
    new = {"user_id": user_id, "name": name, "ciphertext": ciphertext}
    _rows(name, user_id).update_or_create(defaults={"ciphertext": ciphertext}, create_defaults=new)


def secret_get(name: str, *, user_id: UUID | None = None) -> str:
    """The value, or "" where there is none or it was encrypted with another key. The environment wins."""
    if user_id is None and (value := from_environment(name)):
        return value
    row = _of_instance.first(name) if user_id is None else next(iter(_rows(name, user_id)), None)
    return _decrypt(row) if row else ""


def from_environment(name: str) -> str:
    """The value that the environment gives an instance secret, or ""."""
    setting = ENVIRONMENT.get(name)
    return str(getattr(settings, setting)) if setting else ""


def secret_values(user_id: UUID) -> list[str]:
    """The values of the user's secrets, of the instance's, and the server's own keys, of eight characters and more,
    longest first: what must be scrubbed from whatever is done for this user.

    Nobody else's: by what is missing from their own text people could tell another user's secret.
    """
    stored = [_decrypt(row) for row in _seen_by(user_id)]
    own = [settings.SECRET_KEY, settings.IZZY_SECRETS_KEY]
    own += [settings.ANTHROPIC_API_KEY, settings.BRAVE_API_KEY, settings.E2B_API_KEY]
    values = {value for value in [*stored, *own] if len(value) >= SCRUBBED_LENGTH}
    return sorted(values, key=len, reverse=True)


@register(IZZY)
def malformed_key(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """Reports a malformed key before a secret is stored or read."""
    try:
        Fernet(settings.IZZY_SECRETS_KEY)
    except ValueError:
        message = f"{KEY_PLACE} holds no key: it must be 32 bytes in URL-safe base64."
        return [Error(message, hint=KEY_HINT, id="izzy.E002")]
    return []


def check_secrets() -> CheckResult:
    """Health check: the present key opens every stored secret."""
    if malformed := malformed_key(None):
        return CheckResult(False, malformed[0].msg, KEY_HINT)
    closed = [row.name for row in Secret.objects.all() if not _decrypt(row)]
    if closed:
        return CheckResult(False, f"Stored with another key: {', '.join(sorted(closed))}.", KEY_HINT)
    return CheckResult(True, "Stored secrets can be read.")


def _rows(name: str, user_id: UUID | None) -> QuerySet[Secret]:
    owned = Q(user__isnull=True) if user_id is None else Q(user_id=user_id)
    return Secret.objects.filter(owned, name=name)


@prepared
def _of_instance(name: str) -> QuerySet[Secret]:
    return Secret.objects.filter(user__isnull=True, name=name)


@prepared
def _seen_by(user_id: UUID) -> QuerySet[Secret]:
    rows = Secret.objects.filter(Q(user__isnull=True) | Q(user_id=user_id))
    return rows.exclude(user__isnull=True, name="anthropic_base_url")


def _decrypt(row: Secret) -> str:
    try:
        return Fernet(settings.IZZY_SECRETS_KEY).decrypt(row.ciphertext.encode()).decode()
    except (InvalidToken, ValueError):  # ValueError: the key is none, which `malformed_key` tells
        logger.warning("secret %s was encrypted with another key", row.name)
        return ""
