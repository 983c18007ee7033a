"""REST over everything searchable: `/search/` and `/context/`; and `/stats/`."""

import time
from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.errors import NotFound
from apps.core.http.rest import operation
from apps.core.http.shapes import Beside
from apps.core.registries import owners, stats_providers
from apps.memory.capture.selectors import capture_figures
from apps.memory.models import Memory
from apps.memory.notes.fields import clean_tag
from apps.memory.notes.selectors import has_tag
from apps.memory.quality import memory_quality
from apps.memory.recall.searching import context_for, untrusted_among
from apps.search.causes import explained
from apps.search.documents import Hit, Scope, Source
from apps.search.selectors import search

from .notes import NotesView
from .shapes import ContextInput, ContextOutput, Limits, SearchInput, SearchOutput


class SearchView(NotesView):
    """Hybrid search."""

    scopes = {"POST": "read"}

    @operation("search", body=SearchInput, answer=SearchOutput)
    def post(self, request: Request) -> dict[str, Any]:
        """Find notes, what was said in conversations, files and capabilities, by meaning and by words."""
        started = time.perf_counter()
        body = self.body(SearchInput)
        scope = _scope(self.user_id, body)
        hits = search(self.user_id, body.query, top_k=body.top_k, scope=scope, threshold=body.threshold)
        hits = explained(body.query, hits)
        results = _marked(hits, untrusted_among(self.user_id, hits, as_of=scope.as_of))
        took = (time.perf_counter() - started) * 1000
        return {"results": results, "took_ms": round(took, 2)}


class ContextView(NotesView):
    """Context for a model."""

    scopes = {"POST": "read"}

    @operation("context", body=ContextInput, answer=ContextOutput)
    def post(self, request: Request) -> dict[str, Any]:
        """Text for a model to read before it answers, within a token budget; empty when nothing fits."""
        body = self.body(ContextInput)
        packed, untrusted = context_for(
            self.user_id,
            body.query or body.messages or "",
            budget_tokens=body.budget_tokens,
            scope=_scope(self.user_id, body),
            threshold=body.threshold,
        )
        return {"text": packed.text, "tokens": packed.tokens, "items": _marked(packed.items, untrusted)}


class StatsView(NotesView):
    """Figures."""

    @operation("stats", described={"responses": {200: OpenApiTypes.OBJECT}})
    def get(self, request: Request) -> Response:
        """Figures about what Izzy keeps for you, by part (`memory`, `search`, …)."""
        capture = capture_figures(self.user_id)  # which quality is counted from, too
        known = {"capture": capture, "memory_quality": memory_quality(self.user_id, capture=capture)}
        parts = stats_providers.items()
        return Response({name: known.get(name) or figures(self.user_id) for name, figures in parts})


def _marked(hits: Iterable[Hit], untrusted: Collection[UUID]) -> list[Beside]:
    """The hits; one that repeats others' words says so, as the tools have it."""
    return [Beside(hit, untrusted=hit.source_id in untrusted) for hit in hits]


def _scope(user_id: UUID, body: Limits) -> Scope:
    """Scope of a search. Raises NotFound for a conversation that is not the user's."""
    if (
        body.conversation
        and "conversation" in owners
        and not owners["conversation"](user_id, body.conversation)
    ):
        raise NotFound("There is no conversation with this id.")
    sources, only_ids = body.sources, None
    if body.tags:
        sources = frozenset({Source.MEMORY}) & (sources or frozenset(Source))
        notes = Memory.objects.for_user(user_id)
        for tag in body.tags:
            notes = notes.filter(has_tag(clean_tag(tag)))
        only_ids = frozenset(notes.values_list("pk", flat=True))
    return Scope(sources=sources, only_ids=only_ids, conversation_id=body.conversation, as_of=body.as_of)
