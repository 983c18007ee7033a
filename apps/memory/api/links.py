"""REST of the links between notes."""

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from apps.core.errors import InvalidInput
from apps.core.ids import parse_id
from apps.core.rest_views import page_of
from apps.memory import selectors, services

from .base import NotesView
from .inputs import body_object
from .output import edge_json, related_json
from .serializers import EdgeInput, EdgeOutput, RelatedOutput, RelatedQuery


@extend_schema(tags=["memories"])
class RelatedView(NotesView):
    """Notes near a note."""

    @extend_schema(
        operation_id="memories_related",
        parameters=[RelatedQuery],
        responses=page_of("RelatedPage", RelatedOutput(many=True)),
    )
    def get(self, request: Request, memory_id: str) -> Response:
        """The notes within some links of a note, in either direction, nearest first."""
        key = parse_id(memory_id)
        depth = self.parameters(RelatedQuery)["depth"]
        return self.page(selectors.related_notes(self.user_id, key, depth=depth), related_json)


@extend_schema(tags=["memories"])
class LinksView(NotesView):
    """The links of a note."""

    @extend_schema(operation_id="memories_links_list", responses=page_of("LinkPage", EdgeOutput(many=True)))
    def get(self, request: Request, memory_id: str) -> Response:
        """The links that start or end at a note."""
        return self.page(selectors.links_of(self.user_id, parse_id(memory_id)), edge_json)

    @extend_schema(operation_id="memories_links_create", request=EdgeInput, responses={201: EdgeOutput})
    def post(self, request: Request, memory_id: str) -> Response:
        """Link a note to another; the same link again sets its weight."""
        source_id = parse_id(memory_id)
        selectors.memory_get(self.user_id, source_id)
        body = body_object(request.data, {"target", "relation", "weight"})
        if "target" not in body:
            raise InvalidInput("target is missing.", field="target")
        target_id = parse_id(body.pop("target"))
        edge = services.edge_create(user_id=self.user_id, source_id=source_id, target_id=target_id, **body)
        return Response(edge_json(edge), status=status.HTTP_201_CREATED)


@extend_schema(tags=["memories"])
class LinkView(NotesView):
    """One link of a note."""

    @extend_schema(operation_id="memories_links_delete", responses={204: None})
    def delete(self, request: Request, memory_id: str, edge_id: str) -> Response:
        """Remove a link."""
        services.edge_delete(user_id=self.user_id, source_id=parse_id(memory_id), edge_id=parse_id(edge_id))
        return Response(status=status.HTTP_204_NO_CONTENT)
