"""System checks of what an operator sets for search."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error


def known_weights(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """A signal that does not exist would be weighted for nothing."""
    if not settings.IZZY_SEARCH_WEIGHTS:
        return []
    # Here and not above: it brings numpy, which the other commands do without.
    from apps.search.ranking import WEIGHTS

    unknown = [name for name in settings.IZZY_SEARCH_WEIGHTS if name not in WEIGHTS]
    if not unknown:
        return []
    message = f"IZZY_SEARCH_WEIGHTS: search has no signal {unknown[0][:50]!r}."
    return [Error(message, hint=f"There are {', '.join(WEIGHTS)}.", id="izzy.E002")]
