"""From an embedder's name, as IZZY_EMBEDDER gives it, to the embedder."""

import threading
from collections.abc import Callable
from functools import cache

from apps.search.embedders.base import Embedder, EmbedderMissing
from apps.search.embedders.local import FastembedEmbedder, SentenceTransformersEmbedder
from apps.search.embedders.ollama import OllamaEmbedder
from apps.search.embedders.static import StaticEmbedder

_FACTORIES: dict[str, Callable[[str], Embedder]] = {
    "ollama": OllamaEmbedder,
    "fastembed": FastembedEmbedder,
    "sentence-transformers": SentenceTransformersEmbedder,
}
_lock = threading.Lock()


def embedder_for(name: str) -> Embedder:
    """The process' one embedder of that name: `static` or `ENGINE:MODEL`.

    Raises EmbedderMissing for a name that is neither and where a package is not installed.
    """
    with _lock:
        return _make(name)


@cache
def _make(name: str) -> Embedder:
    if name == StaticEmbedder.name:
        return StaticEmbedder()
    engine, _, model = name.partition(":")
    factory = _FACTORIES.get(engine)
    if factory is None or not model:
        engines = ", ".join(f"{engine}:MODEL" for engine in _FACTORIES)
        raise EmbedderMissing(
            f"IZZY_EMBEDDER must be static or one of {engines}, not {name!r}.", code="unknown_embedder"
        )
    return factory(model)
