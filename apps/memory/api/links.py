"""REST of the links between notes."""

from typing import Any

from rest_framework.request import Request

from apps.core.http.rest import Listed, operation
from apps.core.http.shapes import Beside, page_of
from apps.core.ids import parse_id
from apps.memory import selectors, services
from apps.memory.models import MemoryEdge

from .base import NotesView
from .shapes import EdgeInput, EdgeOutput, RelatedOutput, RelatedQuery


class RelatedView(NotesView):
    """Notes near a note."""

    @operation("memories_related", query=RelatedQuery, answer=page_of("RelatedPage", RelatedOutput))
    def get(self, request: Request, memory_id: str) -> Listed:
        """The notes within some links of a note, in either direction, nearest first."""
        key = parse_id(memory_id)
        rows = selectors.related_notes(self.user_id, key, depth=self.query(RelatedQuery).depth)
        return Listed(rows, lambda shown: [Beside(row.note, row) for row in shown])


class LinksView(NotesView):
    """The links of a note."""

    @operation("memories_links_list", answer=page_of("LinkPage", EdgeOutput))
    def get(self, request: Request, memory_id: str) -> Any:
        """The links that start or end at a note."""
        return selectors.links_of(self.user_id, parse_id(memory_id))

    @operation("memories_links_create", body=EdgeInput, answer=EdgeOutput, status=201)
    def post(self, request: Request, memory_id: str) -> MemoryEdge:
        """Link a note to another; the same link again sets its weight."""
        source = self.note(parse_id(memory_id))
        body = self.body(EdgeInput)
        return services.edge_create(
            user_id=self.user_id,
            source_id=source.pk,
            target_id=body.target,
            relation=body.relation,
            weight=body.weight,
        )


class LinkView(NotesView):
    """One link of a note."""

    @operation("memories_links_delete", status=204)
    def delete(self, request: Request, memory_id: str, edge_id: str) -> None:
        """Remove a link."""
        services.edge_delete(user_id=self.user_id, source_id=parse_id(memory_id), edge_id=parse_id(edge_id))
