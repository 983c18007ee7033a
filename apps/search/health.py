"""Health of search for `doctor`, `/readyz` and the pages' banner."""

from django.conf import settings

from apps.core.errors import IzzyError
from apps.core.health import CheckResult
from apps.search.embedders import embedder_for
from apps.search.models import EmbeddingSpace, Passage
from apps.search.spaces import is_resting


def check_embedder() -> CheckResult:
    """Whether search by meaning works, without asking a remote engine."""
    wanted = settings.IZZY_EMBEDDER
    try:
        embedder_for(wanted)
    except IzzyError as error:
        return CheckResult(False, f"Search goes by keywords alone: {error.message}", "Change IZZY_EMBEDDER.")
    space = EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.ACTIVE).first()
    if space is not None and space.name != wanted and Passage.objects.exists():
        message = (
            f"IZZY_EMBEDDER is {wanted}, but the stored vectors are {space.name}'s, which search still uses."
        )
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
    return CheckResult(True, f"The embedder {settings.IZZY_EMBEDDER} answers with {len(vector)} dimensions.")
