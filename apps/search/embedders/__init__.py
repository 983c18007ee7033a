"""Turns text into vectors with the bundled static vectors or an engine named by IZZY_EMBEDDER."""

from apps.search.embedders.base import Embedder, EmbedderDown, EmbedderMissing, QueryWeights
from apps.search.embedders.registry import embedder_for

__all__ = ["Embedder", "EmbedderDown", "EmbedderMissing", "QueryWeights", "embedder_for"]
