"""REST over everything searchable: `/search/` and `/context/`; and `/stats/`."""

import time
from collections.abc import Collection
from typing import Any
from uuid import UUID

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.registries import stats_providers
from apps.memory.searching import context_for, untrusted_among
from apps.search.documents import Hit
from apps.search.selectors import search

from .base import NotesView
from .inputs import (
    body_object,
    context_query,
    optional_number,
    optional_threshold,
    search_query,
    search_scope,
)
from .output import time_json
from .serializers import ContextInput, ContextOutput, SearchInput, SearchOutput

MAX_RESULTS = 100
MAX_BUDGET = 20_000


@extend_schema(tags=["search"])
class SearchView(NotesView):
    """Hybrid search."""

    scopes = {"POST": "read"}

    @extend_schema(operation_id="search", request=SearchInput, responses=SearchOutput)
    def post(self, request: Request) -> Response:
        """Find notes, what was said in conversations, files and capabilities, by meaning and by words."""
        started = time.perf_counter()
        body = body_object(request.data, SearchInput().fields)
        query = search_query(body)
        top_k = optional_number(body, "top_k", 10, high=MAX_RESULTS)
        scope = search_scope(self.user_id, body)
        hits = search(self.user_id, query, top_k=top_k, scope=scope, threshold=optional_threshold(body))
        untrusted = untrusted_among(self.user_id, hits, as_of=scope.as_of)
        results = [_hit_json(hit, untrusted) for hit in hits]
        took = (time.perf_counter() - started) * 1000
        return Response({"results": results, "took_ms": round(took, 2)})


@extend_schema(tags=["search"])
class ContextView(NotesView):
    """Context for a model."""

    scopes = {"POST": "read"}

    @extend_schema(operation_id="context", request=ContextInput, responses=ContextOutput)
    def post(self, request: Request) -> Response:
        """What a model should read before it answers, within a token budget; empty when nothing fits."""
        body = body_object(request.data, ContextInput().fields)
        query = context_query(body)
        budget = optional_number(body, "budget_tokens", 500, high=MAX_BUDGET)
        scope = search_scope(self.user_id, body)
        packed, untrusted = context_for(
            self.user_id, query, budget_tokens=budget, scope=scope, threshold=optional_threshold(body)
        )
        items = [
            {
                "source": str(hit.source),
                "id": str(hit.source_id),
                "external_id": hit.external_id,
                "score": hit.score,
                "reason": hit.reason,
                **_mark(hit, untrusted),
            }
            for hit in packed.items
        ]
        return Response({"text": packed.text, "tokens": packed.tokens, "items": items})


@extend_schema(tags=["search"])
class StatsView(NotesView):
    """Figures."""

    @extend_schema(operation_id="stats", responses=OpenApiTypes.OBJECT)
    def get(self, request: Request) -> Response:
        """Figures about what Izzy keeps for you, by part (`memory`, `search`, …)."""
        return Response({name: figures(self.user_id) for name, figures in stats_providers})


def _hit_json(hit: Hit, untrusted: Collection[UUID]) -> dict[str, Any]:
    return {
        "source": str(hit.source),
        "id": str(hit.source_id),
        "external_id": hit.external_id,
        "text": hit.text,
        "score": hit.score,
        "parts": hit.parts,
        "reason": hit.reason,
        "created_at": time_json(hit.happened_at),
        **_mark(hit, untrusted),
    }


def _mark(hit: Hit, untrusted: Collection[UUID]) -> dict[str, bool]:
    """`untrusted: true`, as the tools have it, where a document repeats others' words; else nothing."""
    return {"untrusted": True} if hit.source_id in untrusted else {}
