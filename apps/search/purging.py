"""What the search index keeps of a text: passages, postings, and rows in this process' memory."""

from apps.core.purging.places import Place
from apps.core.purging.trace import Trace
from apps.core.registries import disk_cleaners, purge_places
from apps.search.backends import Stem, backend
from apps.search.backends.sqlite import segments_merge
from apps.search.index import cache
from apps.search.models import IndexOwner, Passage
from apps.search.spaces import forget_queries

_PASSAGE = ("text", "terms", "labels", "session", "speaker", "external_id")


def register_places() -> None:
    purge_places.register(
        "search.passages",
        Place(
            label="The search index",
            columns=tuple(f"search.passage.{name}" for name in _PASSAGE),
            why="Passages of messages, notes or files that stay.",
            clear=lambda trace, hits: 0,
        ),
    )
    packed = ("search.passage.features", "search.passage.vector_a", "search.passage.vector_b")
    purge_places.register(
        "search.vectors", Place(label="Vectors", columns=packed, wordless=True, look=vectors_left)
    )
    purge_places.register("search.full_text", Place(label="Full text", look=postings_left))
    purge_places.register("search.memory", Place(label="The index in this process' memory", look=memory_left))
    disk_cleaners.register("full text", segments_merge)


def vectors_left(trace: Trace) -> int:
    """Passages, and with them vectors, of what was purged."""
    return Passage.objects.filter(user_id=trace.user_id, source_id__in=trace.ids | trace.messages).count()


def postings_left(trace: Trace) -> int:
    """How many of the distinctive words full text still finds among the user's passages."""
    owner = IndexOwner.objects.filter(user_id=trace.user_id).first()
    if owner is None:
        return 0
    return sum(len(backend.postings(owner.number, Stem(stem))) > 0 for stem in trace.exclusive.stems)


def memory_left(trace: Trace) -> int:
    """Brings this process' index up to date, where it holds one; the others do so at the user's next search."""
    forget_queries()
    cache.forget(trace.user_id)
    return int(cache.holds(trace.user_id))
