"""Loads what the first search would wait for."""

from django.conf import settings

from apps.core.errors import IzzyError
from apps.search.embedders import embedder_for
from apps.search.language.analysis import document_terms


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
