"""Counts what search keeps of a text: passages, postings, and rows in this process' memory."""

from apps.core.purging.places import PurgePart
from apps.core.purging.trace import Trace
from apps.search.backends import Stem, backend
from apps.search.index import cache
from apps.search.language.analysis import document_terms
from apps.search.models import IndexOwner, Passage
from apps.search.spaces import forget_queries


def vectors_left(trace: Trace) -> int:
    """Passages, and with them vectors, of what was purged."""
    return Passage.objects.filter(user_id=trace.user_id, source_id__in=trace.ids | trace.messages).count()


def postings_left(trace: Trace) -> int:
    """Passages that full text finds by a word that only the purged rows have, and that are theirs or are gone."""
    owner = IndexOwner.objects.filter(user_id=trace.user_id).first()
    if owner is None:
        return 0
    terms = {term for word in trace.exclusive.words for term in document_terms(word)[1]}
    found = {int(key) for term in terms for key in backend.postings(owner.number, Stem(term))}
    others = Passage.objects.filter(user_id=trace.user_id).exclude(source_id__in=trace.ids | trace.messages)
    return len(found.difference(others.values_list("pk", flat=True)))


def memory_left(trace: Trace) -> int:
    """Brings this process' index up to date, where it holds one; the others do so at the user's next search."""
    forget_queries()
    cache.forget(trace.user_id)
    return int(cache.holds(trace.user_id))


PURGING = PurgePart(
    counts={"search.vectors": vectors_left, "search.full_text": postings_left, "search.memory": memory_left}
)
