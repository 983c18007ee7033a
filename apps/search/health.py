"""Health of search for `doctor`, `/readyz` and the pages' banner."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error

from apps.core.errors import IzzyError
from apps.core.health import CheckResult
from apps.search.embedders.base import EmbedderDown
from apps.search.embedders.deadline import ANSWER_SECONDS, answered_within
from apps.search.embedders.engines import embedder_for, static_embedder
from apps.search.embedders.static import StaticEmbedder
from apps.search.filling import PROBE, side_waiting
from apps.search.proactive.concern import whole_lesson
from apps.search.proactive.contextual_query import word_usage
from apps.search.proactive.word_table import word_table
from apps.search.spaces import encoder_name, is_resting, side_space
from apps.search.text.analysis import document_terms


def check_embedder() -> CheckResult:
    """Whether search by meaning works, without asking a remote encoder."""
    name, bundled = encoder_name(), static_embedder()
    try:
        embedder_for(name or StaticEmbedder.name)
    except IzzyError as error:
        rest = "the bundled vectors" if bundled else "keywords"
        return CheckResult(
            False, f"Search goes by {rest} alone: {error.message}", "Change IZZY_EMBEDDER."
        )
    if name and (waiting := side_waiting(name)):
        rests = is_resting(name)
        state = "did not answer a moment ago" if rests else "is catching up"
        instead = "the bundled vectors stand" if bundled else "keywords stand"
        return CheckResult(
            not rests,
            f"{waiting:,} passages wait for their vectors of {name}, which {state}: {instead} in for it.",
            "They are embedded when it answers; `manage.py reindex` says what is wrong.",
        )
    if not name:
        return CheckResult(True, "Search goes by meaning and by words. The embedder is static.")
    beside = " beside the bundled vectors" if bundled else ""
    return CheckResult(True, f"Search goes by meaning and by words. The embedder is {name}{beside}.")


def connect_embedder() -> CheckResult:
    """Embed one sentence, for the button of the instance page."""
    name = settings.IZZY_EMBEDDER
    try:
        dimension = embedder_for(name).embed_queries([PROBE]).shape[1]
    except IzzyError as error:
        return CheckResult(False, error.message)
    space = side_space()
    if space is not None and space.dimension != dimension:
        message = (
            f"The embedder {name} answers with {dimension} dimensions, where it gave {space.dimension}."
        )
        return CheckResult(False, message, "Run: manage.py reindex")
    return CheckResult(True, f"The embedder {name} answers with {dimension} dimensions.")


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
    """Load the analyser, the lesson of concern, how English uses its words and the bundled vectors, and have the encoder load its model,
    or else the bundled words."""
    document_terms("The quick brown fox", "en")
    whole_lesson(near=bool(encoder_name()))
    word_usage("en")
    embedder = static_embedder()
    if embedder is not None:
        embedder.embed_query("The quick brown fox")
        embedder.embed_documents(["The quick brown fox"])
    if name := encoder_name():
        with suppress(EmbedderDown):
            encoder = embedder_for(name)
            answered_within(ANSWER_SECONDS, name, lambda: encoder.embed_queries([PROBE]))
    else:
        word_table("en")
