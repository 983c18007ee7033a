"""Health of search for `doctor`, `/readyz` and the pages' banner."""

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error

from apps.core.errors import IzzyError
from apps.core.health import CheckResult
from apps.search.embedders.engines import embedder_for
from apps.search.models import EmbeddingSpace, Passage
from apps.search.spaces import is_resting
from apps.search.text.analysis import document_terms


def check_embedder() -> CheckResult:
    """Whether search by meaning works, without asking a remote engine."""
    wanted = settings.IZZY_EMBEDDER
    try:
        embedder_for(wanted)
    except IzzyError as error:
        return CheckResult(
            False, f"Search goes by keywords alone: {error.message}", "Change IZZY_EMBEDDER."
        )
    space = EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.ACTIVE).first()
    if space is not None and space.name != wanted and Passage.objects.exists():
        message = f"IZZY_EMBEDDER is {wanted}, but the stored vectors are {space.name}'s, which search still uses."
        return CheckResult(False, message, "Run: manage.py reindex")
    waiting = Passage.objects.filter(pending=True).count()
    if waiting:
        state = "did not answer a moment ago" if is_resting(wanted) else "is catching up"
        return CheckResult(
            False,
            f"{waiting:,} passages are found by keywords alone: {wanted} {state}.",
            "They are embedded when it answers.",
        )
    return CheckResult(True, f"Search goes by meaning and by words. The embedder is {wanted}.")


def connect_embedder() -> CheckResult:
    """Embed one sentence, for the button of the instance page."""
    try:
        vector = embedder_for(settings.IZZY_EMBEDDER).embed_query("Is anybody there?")
    except IzzyError as error:
        return CheckResult(False, error.message)
    return CheckResult(
        True, f"The embedder {settings.IZZY_EMBEDDER} answers with {len(vector)} dimensions."
    )


def known_weights(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[CheckMessage]:
    """A signal that does not exist would be weighted for nothing."""
    if not settings.IZZY_SEARCH_WEIGHTS:
        return []
    # Here and not above: it brings numpy, which the other commands do without.
    from apps.search.ranking.signals import WEIGHTS

    unknown = [name for name in settings.IZZY_SEARCH_WEIGHTS if name not in WEIGHTS]
    if not unknown:
        return []
    message = f"IZZY_SEARCH_WEIGHTS: search has no signal {unknown[0][:50]!r}."
    return [Error(message, hint=f"There are {', '.join(WEIGHTS)}.", id="izzy.E002")]


def warm_up() -> None:
    """Load the analyser and, where it is local to the process, the embedder."""
    document_terms("The quick brown fox", "en")
    try:
        embedder = embedder_for(settings.IZZY_EMBEDDER)
    except IzzyError:
        return
    if embedder.inline:
        embedder.embed_query("The quick brown fox")
        embedder.embed_documents(["The quick brown fox"])
