"""Reads of the search index. Synchronous: from async code call through `apps.core.db.pool.in_db`."""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import Count, Q
from django.utils import timezone
from numpy.typing import NDArray

from apps.accounts.selectors import user_language, user_time_zone
from apps.core.metrics.base import histogram
from apps.core.text import fold
from apps.core.traces import traced
from apps.search.backends import Row, Space, Stem, backend
from apps.search.documents import Facet, Hit, Label, Packed, Scope, Source
from apps.search.embedders.base import Matrix
from apps.search.embedders.engines import static_embedder
from apps.search.embedders.static import StaticEmbedder
from apps.search.features import best_places
from apps.search.index.cache import index_open
from apps.search.index.occasions import nearest
from apps.search.models import IndexOwner, Passage
from apps.search.packing import candidates_for, pack
from apps.search.ranking.query import MAX_QUERY_CHARS, query_prepare, understand
from apps.search.ranking.relevance import found_in, hits_for, row_shares, share_of
from apps.search.ranking.signals import score_rows
from apps.search.spaces import Use, can_ask, encoder_name, side_space, side_vectors
from apps.search.text.analysis import DEFAULT_LANGUAGE, detect_language, split_words, stems, stop_words
from apps.search.text.words import STOP_WORDS

EVERYTHING = Scope()
MAX_TOP_K = 1000
SECONDS = histogram("izzy_search_seconds", "Time of a search, its rows fetched.")


@traced("search", SECONDS)
def search(
    user_id: UUID, query: str, *, top_k: int = 10, scope: Scope | None = None, threshold: float = 0.0
) -> list[Hit]:
    """The user's best documents for a query, best first, one hit per (source, source_id), none below `threshold`.

    An empty query finds nothing; of a long one the first 20,000 characters count. Where the embedder cannot answer,
    keywords alone decide. At most 1,000 hits.
    """
    if not query.strip() or top_k < 1:
        return []
    scope, now = scope or EVERYTHING, timezone.now()
    if encoder_name():
        query_prepare(user_id, query[:MAX_QUERY_CHARS])
    with index_open(user_id, past=scope.as_of is not None) as opened:
        if opened is None or not opened[1].living:
            return []
        head, rows = opened
        asked = understand(query, rows, head, now=scope.as_of or now)
        allowed = rows.allowed(scope, now=now)
        if asked.is_empty or not allowed.any():
            return []
        scores = score_rows(rows, asked, allowed)
        found = found_in(rows, head, asked, scores, min(top_k, MAX_TOP_K))
    good = [one for one in found if one.score >= threshold]
    return hits_for(user_id, good, asked.terms, asked.zone)


def context(
    user_id: UUID,
    query: str,
    *,
    budget_tokens: int = 500,
    scope: Scope | None = None,
    threshold: float = 0.0,
    remarks: Callable[[Sequence[Hit]], Mapping[UUID, str]] | None = None,
) -> Packed:
    """Text for a model to read about the query, within the budget; empty when nothing fits.

    `remarks` gives, for the hits that come into question, what a reader has to know of a document (by source id).
    """
    hits = search(user_id, query, top_k=candidates_for(budget_tokens), scope=scope, threshold=threshold)
    found = remarks(hits) if remarks and hits else None
    return pack(query, hits, budget_tokens, remarks=found, zone=user_time_zone(user_id))


def similar(
    user_id: UUID, text: str, *, top_k: int = 10, scope: Scope | None = None
) -> list[tuple[UUID, float]]:
    """Source ids with calibrated similarity 0..1 of whole documents (1 says the same), best first.

    From about 0.85 on two texts may say the same, from 0.5 on they are about the same; a number, a name or a "not"
    moves it too little to be judged by it. Empty where the embedder cannot answer.
    """
    return similar_each(user_id, [text], top_k=top_k, scope=scope)[0]


def similar_each(
    user_id: UUID, texts: Sequence[str], *, top_k: int = 10, scope: Scope | None = None
) -> list[list[tuple[UUID, float]]]:
    """`similar` of each of some texts, with one look at the index and one request to the encoder."""
    asked = [number for number, text in enumerate(texts) if text.strip()]
    known = backend.head(user_id)
    nothing: list[list[tuple[UUID, float]]] = [[] for _ in texts]
    if known is None or not asked:
        return nothing
    # Not while the index is locked: the encoder may take long.
    wanted = [texts[number] for number in asked]
    base, side = _base_vectors(wanted), None
    if known.side is not None:
        side = side_vectors(known.side, wanted, Use.DOCUMENT)
    with index_open(user_id, head=known) as opened:
        if opened is None:
            return nothing
        rows = opened[1]
        allowed = rows.allowed(scope or EVERYTHING, now=timezone.now())
        if rows.side_space != known.side:
            side = None
        documents = rows.features["document"]
        passages: list[list[tuple[int, float]]] = [[] for _ in texts]
        for place, number in enumerate(asked):
            own = None if base is None else base[place]
            beside = None if side is None else side[place]
            shares = row_shares(rows, own, beside, allowed)
            best = best_places(shares, documents, top_k)
            alike = np.clip(shares[best], 0, 1).tolist()
            passages[number] = list(zip(rows.ids[best].tolist(), alike, strict=True))
    ids = list({passage for each in passages for passage, _ in each})
    held = backend.rows_fetch(user_id, ids) if ids else {}
    return [
        [(held[key].source_id, round(alike, 4)) for key, alike in each if key in held]
        for each in passages
    ]


def _base_vectors(texts: Sequence[str]) -> Matrix | None:
    """Vectors of texts in the base space; None where the bundled vectors are missing."""
    embedder = static_embedder()
    return None if embedder is None else embedder.embed_documents(texts)


def likenesses(texts: Sequence[str]) -> NDArray[np.float32]:
    """The calibrated similarity of each text with each, the mean of the spaces; zeros where no embedder answers."""
    space = side_space() if len(texts) > 1 else None
    spaces = ((_base_vectors(texts), StaticEmbedder), (side_vectors(space, texts, Use.DOCUMENT), space))
    shares = [
        share_of(vectors @ vectors.T, scale)
        for vectors, scale in spaces
        if vectors is not None and scale is not None
    ]
    if not shares or len(texts) < 2:
        return np.zeros((len(texts), len(texts)), dtype=np.float32)
    return np.asarray(np.clip(np.mean(shares, axis=0), 0, 1), dtype=np.float32)


OUTSTANDING = 2.0
FEW_PHRASES = 20
"""Of fewer occasions none can stand out: what they measure is all there is."""


def near_occasions(
    user_id: UUID, texts: Sequence[str], *, top_k: int = 10, scope: Scope | None = None
) -> list[tuple[UUID, float]]:
    """Source ids of documents with an occasion near to one of the texts, with that calibrated similarity 0..1, best first.

    The occasion has to be OUTSTANDING deviations nearer than all of the user's are on the average. Empty where no embedder answers.
    """
    known = backend.head(user_id)
    if known is None or not texts:
        return []
    asks = known.side is not None and can_ask(known.side, " ".join(texts))
    found = nearest(
        user_id,
        base=_base_vectors(texts),
        side=side_vectors(known.side, texts, Use.QUERY) if asks else None,
        scope=scope or EVERYTHING,
    )
    spaces = [
        (near, space)
        for near, space in ((found.base, known.base), (found.side, known.side))
        if near is not None and space is not None
    ]
    if not spaces:
        return []
    shares = np.mean([share_of(near.cosines, space) for near, space in spaces], axis=0)
    if found.number >= FEW_PHRASES:
        shares[np.mean([near.standing for near, _ in spaces], axis=0) < OUTSTANDING] = 0
    best: dict[UUID, float] = {}
    for phrase, share in zip(found.phrases, shares.max(axis=0).tolist(), strict=True):
        best[phrase.source_id] = max(best.get(phrase.source_id, 0.0), min(share, 1.0))
    ranked = sorted(best.items(), key=itemgetter(1), reverse=True)
    return [(key, round(share, 4)) for key, share in ranked[:top_k] if share > 0]


def labels_of(
    user_id: UUID, source: Source, source_ids: Collection[UUID]
) -> dict[UUID, tuple[Label, ...]]:
    """The labels by which documents that are indexed are found; those without any have none."""
    rows = Passage.objects.filter(
        source_id__in=source_ids, source=source, part=0, facet=Facet.TEXT, past=False
    )
    return {
        source_id: tuple(Label(kind, words) for kind, words, _ in json.loads(packed or "[]"))
        for owner, source_id, packed in rows.values_list("user_id", "source_id", "labels")
        if owner == user_id
    }


Pair = tuple[UUID, UUID, float]

BLOCK = 1024
"""Rows of one matrix product: 40 MB of similarities at 10,000 documents."""
MAX_PAIRS = 2000
MAX_COMPARED = 20_000
"""Of more documents the newest are compared."""
_HELD = 64

_known: OrderedDict[tuple[UUID, str, float], tuple[tuple[int, Space | None, int], list[Pair]]] = (
    OrderedDict()
)
_lock = threading.Lock()


def alike_pairs(
    user_id: UUID, *, source: Source, among: Collection[UUID], at_least: float
) -> list[Pair]:
    """Pairs of documents of `among` with a calibrated similarity of at least `at_least`, the most alike first.

    Documents are compared by their first passage. At most 2,000 pairs. Remembered until the user's index, or the
    number of documents, changes.
    """
    with index_open(user_id) as opened:
        if opened is None or not among:
            return []
        head, rows = opened
        key, state = (user_id, str(source), at_least), (head.change, head.side, len(among))
        with _lock:
            known = _known.get(key)
        if known is not None and known[0] == state:
            return known[1]
        wanted = set(among)
        first = Passage.objects.filter(
            user_id=user_id, source=source, part=0, past=False, facet=Facet.TEXT
        )
        names = {passage: key for passage, key in first.values_list("id", "source_id") if key in wanted}
        wanted_rows = rows.alive[: rows.size] & np.isin(rows.ids[: rows.size], list(names))
        places = np.flatnonzero(wanted_rows)[-MAX_COMPARED:]
        vectors = [_Vectors(rows.vectors[places], rows.embedded[places], rows.base)]
        if rows.side is not None:
            side = rows.side
            vectors.append(_Vectors(side.vectors[places], side.embedded[places], side.space))
        documents = [names[passage] for passage in rows.ids[places].tolist()]
    pairs = _pairs(vectors, documents, at_least)
    with _lock:
        _known[key] = (state, pairs)
        _known.move_to_end(key)
        if len(_known) > _HELD:
            _known.popitem(last=False)
    return pairs


@dataclass(frozen=True, slots=True)
class _Vectors:
    """Documents in one space, (n, dimension); `embedded` says which have a vector there."""

    vectors: NDArray[np.floating]
    embedded: NDArray[np.bool_]
    space: Space

    def shares(self, start: int) -> tuple[Matrix, NDArray[np.bool_]]:
        """How alike the documents of a block are to those from its start on, and of which that can be said."""
        block = self.vectors[start : start + BLOCK].astype(np.float32)
        known = self.embedded[start : start + BLOCK, None] & self.embedded[None, start:]
        return share_of(block @ self.vectors[start:].astype(np.float32).T, self.space), known


def _pairs(spaces: list[_Vectors], documents: list[UUID], at_least: float) -> list[Pair]:
    found: list[Pair] = []
    for start in range(0, len(documents), BLOCK):
        blocks = [vectors.shares(start) for vectors in spaces]
        number = sum(known.astype(np.float32) for _, known in blocks)
        total = sum(np.where(known, shares, 0) for shares, known in blocks)
        similar = np.clip(total / np.maximum(number, 1), 0, 1)
        ones, twos = np.nonzero(np.triu(similar >= at_least, 1))
        # Of thousands that say the same there are millions of pairs: only the best become objects.
        best = np.argsort(-similar[ones, twos], kind="stable")[:MAX_PAIRS]
        for one, two in zip(ones[best].tolist(), twos[best].tolist(), strict=True):
            found.append((documents[start + one], documents[start + two], float(similar[one, two])))
        found = sorted(found, key=lambda pair: -pair[2])[:MAX_PAIRS]
    return found


CANDIDATES = 500
"""Passages that are read, the newest with all of the words; one that says them in this order is among them, unless
the words are very common ones."""
MAX_WORDS = 12
MIN_STEM = 3


SAID_FROM = 0.35
"""Cosine of a phrase and a message, both in the bundled vectors, from which on the one is about the other: of invented notes'
occasions and the messages that call for the note 7 in 10 pairs lie above, of phrases and any messages 5 in 1,000."""
NEWEST_SAID, FEWEST_SAID = 500, 40
OFTEN = 0.05


def said_often(user_id: UUID, phrases: Collection[str]) -> set[str]:
    """Those of some phrases that more than OFTEN of the newest messages of the user are about; none where the user wrote fewer
    than FEWEST_SAID, or where the bundled vectors are missing."""
    written = Passage.objects.filter(
        user_id=user_id, source=Source.CONVERSATION, speaker="user", part=0, facet=Facet.TEXT
    )
    newest = written.order_by("-change", "-id").values_list("text", flat=True)
    texts, wanted = list(newest[:NEWEST_SAID]) if phrases else [], list(phrases)
    if len(texts) < FEWEST_SAID:
        return set()
    vectors, messages = _base_vectors(wanted), _base_vectors(texts)
    if vectors is None or messages is None:
        return set()
    shares = np.count_nonzero(vectors @ messages.T >= SAID_FROM, axis=1) / len(texts)
    return {phrase for phrase, share in zip(wanted, shares.tolist(), strict=True) if share > OFTEN}


def passages_saying(user_id: UUID, query: str, *, source: Source) -> Iterator[Row]:
    """The user's passages of one source that contain the query, in whatever case, newest first.

    Its words may be beginnings of the text's. Full text does not know ends and middles of words, nor function words of
    the text's language: a query of such alone finds nothing. What it costs depends on how often the words were said, not on how much was.
    """
    owner = IndexOwner.objects.filter(user_id=user_id).values_list("number", flat=True).first()
    codes = tuple(dict.fromkeys([user_language(user_id) or detect_language(query), DEFAULT_LANGUAGE]))
    words = _content_words(query, codes)
    if owner is None or not words:
        return
    forms = [list(_forms(word, codes)) for word in words]
    newest = backend.postings_matching(owner, forms, limit=CANDIDATES).tolist()
    wanted = plain(query)
    for _, row in sorted(backend.rows_fetch(user_id, newest).items(), reverse=True):
        if row.source is source and not row.past and wanted in plain(row.text):
            yield row


def plain(text: str) -> str:
    """A text as it is compared: without case, in one spelling of each letter, with single spaces."""
    return " ".join(fold(text).split())


def _content_words(query: str, codes: tuple[str, ...]) -> list[str]:
    """The words of a query in some languages that full text may know.

    Where there are others, what is a function word in any language is left out, a last word that one may begin with, and
    single letters.
    """
    words = list(dict.fromkeys(split_words(query)))
    ignored = frozenset().union(*STOP_WORDS.values(), *map(stop_words, codes))
    content = [word for word in words if word not in ignored] or words
    content = [word for word in content if not _is_letter(word)] or content[:1]
    if (
        len(content) > 1
        and content[-1] == words[-1]
        and any(each.startswith(words[-1]) for each in ignored)
    ):
        content.pop()
    return content[:MAX_WORDS]


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii()


def _forms(word: str, codes: tuple[str, ...]) -> Iterator[Stem]:
    """The stems that a text may be found by which has a word that begins so: all that begin so too, the word's own, and
    those that are shorter, since a stem is a word without its ending."""
    (bare,) = stems([word], "")
    # One letter begins a twentieth of all words; one sign of a script without spaces is a word.
    yield Stem(bare, prefix=not _is_letter(word))
    own = {stem for code in codes for stem in stems([word], code)}
    for stem in sorted({*own, *(bare[:end] for end in range(MIN_STEM, len(bare)))} - {bare}):
        yield Stem(stem)


def user_figures(user_id: UUID) -> dict[str, Any]:
    """Passages by source, how many wait for a vector, and the embedder in use."""
    space, missing = side_space(), Q(vector=None)
    if encoder_name():
        missing = missing | Q(side_vector=None) if space else Q()
    rows = Passage.objects.filter(user_id=user_id, past=False).order_by().values("source")
    texts = Count("id", filter=Q(facet=Facet.TEXT))
    counted = list(rows.annotate(passages=texts, waiting=Count("id", filter=missing)))
    return {
        "passages": {row["source"]: row["passages"] for row in counted},
        "waiting_for_vectors": sum(row["waiting"] for row in counted),
        "embedder": space.name if space is not None else StaticEmbedder.name,
    }
