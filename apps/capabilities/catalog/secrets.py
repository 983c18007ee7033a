"""A user's secrets: kept encrypted, never shown again."""

from uuid import UUID

from django.db import transaction

from apps.accounts.models import Secret
from apps.accounts.secrets import secret_set
from apps.capabilities.catalog.drafts import clean_secret_name
from apps.capabilities.catalog.selectors import secrets_stored
from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.text import clean_text, storable

MAX_SECRETS = 100
MAX_VALUE_CHARS = 20_000
MIN_VALUE_CHARS = 8


def clean_secret_value(value: object) -> str:
    """A value of MIN_VALUE_CHARS to MAX_VALUE_CHARS characters."""
    text = clean_text(value, field="value", max_chars=MAX_VALUE_CHARS)
    if len(text) < MIN_VALUE_CHARS:
        message = f"A secret has at least {MIN_VALUE_CHARS} characters: a shorter one could not be recognised in logs."
        raise InvalidInput(message, code="too_short", field="value")
    return text


@transaction.atomic
def user_secret_set(*, user_id: UUID, name: object, value: object) -> str:
    """Keeps a value under a name (that of an environment variable), replacing an earlier one; returns the name.

    A value of fewer than eight characters is refused: it could not be taken out of texts without spoiling them.
    """
    name, text = clean_secret_name(name), clean_secret_value(value)
    stored = {row.name for row in secrets_stored(user_id)}
    if name not in stored and len(stored) >= MAX_SECRETS:
        raise Conflict(f"There are {MAX_SECRETS} secrets already; delete some first.", code="too_many")
    secret_set(name=name, value=text, user_id=user_id)
    return name


@transaction.atomic
def user_secret_delete(*, user_id: UUID, name: str) -> None:
    """Forgets a secret. Raises NotFound."""
    rows = Secret.objects.filter(user_id=user_id, name=storable(name))
    if not rows.delete()[0]:
        raise NotFound("There is no secret of this name.")
