"""Reads of the search index. Synchronous: from async code call through `apps.core.database.in_db`."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from uuid import UUID

import numpy as np
from django.conf import settings
from django.utils import timezone
from numpy.typing import NDArray

from apps.search.backends import backend
from apps.search.documents import Facet, Hit, Label, Packed, Scope, Source
from apps.search.embedders import EmbedderDown, embedder_for
from apps.search.embedders.base import Matrix
from apps.search.features import Flag
from apps.search.hits import Found, best_places, found_in, hits_for
from apps.search.index.cache import index_open
from apps.search.models import EmbeddingSpace, Passage
from apps.search.packing import candidates_for, pack
from apps.search.query import MAX_QUERY_CHARS, Term, understand
from apps.search.ranking import score_rows
from apps.search.relevance import likeness
from apps.search.scoping import allowed_rows
from apps.search.spaces import is_resting, note_down, query_prepare

__all__ = ["Hit", "Packed", "Scope", "context", "likenesses", "search", "similar"]

EVERYTHING = Scope()
MAX_TOP_K = 1000


def search(
    user_id: UUID, query: str, *, top_k: int = 10, scope: Scope | None = None, threshold: float = 0.0
) -> list[Hit]:
    """The user's best documents for a query, best first, one hit per (source, source_id), none below `threshold`.

    An empty query finds nothing; of a long one the first 20,000 characters count. Where the embedder cannot answer,
    keywords alone decide. At most 1,000 hits.
    """
    found, terms = _find(user_id, query, min(top_k, MAX_TOP_K), scope or EVERYTHING)
    return hits_for(user_id, [one for one in found if one.score >= threshold], terms)


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
    return pack(query, hits, budget_tokens, remarks=remarks(hits) if remarks and hits else None)


def similar(
    user_id: UUID, text: str, *, top_k: int = 10, scope: Scope | None = None
) -> list[tuple[UUID, float]]:
    """Source ids with calibrated similarity 0..1 of whole documents (1 says the same), best first.

    From about 0.85 on two texts may say the same, from 0.5 on they are about the same; a number, a name or a "not"
    moves it too little to be told by it. Empty where the embedder cannot answer.
    """
    known = backend.head(user_id)
    if known is None or not text.strip():
        return []
    try:
        vector = _document_vectors(known.space_name, [text])[
            0
        ]  # not while the index is locked: it may take long
    except EmbedderDown:
        return []
    with index_open(user_id) as opened:
        if opened is None:
            return []
        head, rows = opened
        if head.space_id != known.space_id or len(vector) != rows.dimension:
            return []
        cosine = rows.cosines(vector)
        allowed = allowed_rows(rows, scope or EVERYTHING, now=timezone.now()) & rows.embedded[: rows.size]
        allowed &= (rows.features["flags"][: rows.size] & Flag.OCCASIONS) == 0
        cosine[~allowed] = -np.inf
        best = best_places(cosine, rows, top_k)
        pairs = list(zip(rows.ids[best].tolist(), likeness(cosine[best], head).tolist(), strict=True))
    found = backend.rows_fetch(user_id, [passage for passage, _ in pairs])
    return [
        (found[passage].source_id, round(similarity, 4)) for passage, similarity in pairs if passage in found
    ]


def likenesses(texts: Sequence[str]) -> NDArray[np.float32]:
    """The calibrated similarity of each text with each, in the active space; zeros where no embedder answers."""
    space = EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.ACTIVE).first()
    nothing = np.zeros((len(texts), len(texts)), dtype=np.float32)
    if len(texts) < 2:
        return nothing
    try:
        name = space.name if space else settings.IZZY_EMBEDDER
        vectors = _document_vectors(name, texts)
        return likeness(vectors @ vectors.T, space or embedder_for(name))
    except EmbedderDown:
        return nothing


def _document_vectors(name: str, texts: Sequence[str]) -> Matrix:
    """Vectors of texts that are compared but not stored. Raises EmbedderDown, at once for a while after a failure."""
    if is_resting(name):
        raise EmbedderDown(f"{name} did not answer a moment ago.")
    try:
        return embedder_for(name).embed_documents(list(texts))
    except EmbedderDown:
        note_down(name)
        raise


def labels_of(user_id: UUID, source: Source, source_ids: Collection[UUID]) -> dict[UUID, tuple[Label, ...]]:
    """The labels by which documents that are indexed are found; those without any have none."""
    rows = Passage.objects.filter(
        source_id__in=source_ids, source=source, part=0, facet=Facet.TEXT, past=False
    )
    return {
        source_id: tuple(Label(kind, words) for kind, words, _ in json.loads(packed or "[]"))
        for owner, source_id, packed in rows.values_list("user_id", "source_id", "labels")
        if owner == user_id
    }


def _find(user_id: UUID, text: str, top_k: int, scope: Scope) -> tuple[list[Found], list[Term]]:
    nothing = list[Found](), list[Term]()
    if not text.strip() or top_k < 1:
        return nothing
    query_prepare(user_id, text[:MAX_QUERY_CHARS])
    with index_open(user_id, past=scope.as_of is not None) as opened:
        if opened is None or not opened[1].living:
            return nothing
        head, rows = opened
        now = timezone.now()
        query = understand(text, rows, head, now=scope.as_of or now)
        allowed = allowed_rows(rows, scope, now=now)
        if query.is_empty or not allowed.any():
            return nothing
        return found_in(rows, head, query, score_rows(rows, query, allowed), top_k), query.terms
