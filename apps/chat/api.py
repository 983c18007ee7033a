"""REST: conversations and what was said in them, and taking in conversations held elsewhere."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.chat import services
from apps.chat.inputs import body_of, flag
from apps.chat.models import Conversation, Message
from apps.chat.selectors.conversations import (
    conversation_get,
    conversations_for,
    messages_counted,
)
from apps.chat.selectors.finding import conversations_search
from apps.chat.selectors.messages import messages_json, readable_messages
from apps.chat.serializers import (
    ConversationDetailOutput,
    ConversationInput,
    ConversationOutput,
    ConversationsQuery,
    IngestInput,
    IngestOutput,
    MessageOutput,
    RenameInput,
    conversation_json,
)
from apps.core.errors import NotFound
from apps.core.ids import parse_id
from apps.core.pagination import Pages
from apps.core.rest_views import UserView, page_of


class ConversationsView(UserView):
    """`GET POST /conversations/`."""

    @extend_schema(
        operation_id="conversations_list",
        parameters=[ConversationsQuery],
        responses=page_of("ConversationPage", ConversationOutput(many=True)),
    )
    def get(self, request: Request) -> Response:
        """List conversations, newest first, or those that fit a search."""
        given = self.parameters(ConversationsQuery)
        channel = given["channel"] or None
        if query := given["q"]:
            found = conversations_search(self.user_id, query, limit=200, channel=channel)
            return self._page([each.conversation for each in found])
        return self._page(conversations_for(self.user_id, channel=channel))

    @extend_schema(
        operation_id="conversations_create", request=ConversationInput, responses={201: ConversationOutput}
    )
    def post(self, request: Request) -> Response:
        """Begin an empty conversation."""
        body = body_of(request)
        row = services.conversation_create(
            user_id=self.user_id, title=body.get("title", ""), use_memory=flag(body, "use_memory", None)
        )
        return Response(conversation_json(row, 0), status=201)

    def _page(self, rows: Any) -> Response:
        pages = Pages()
        shown: list[Conversation] = pages.paginate_queryset(rows, self.request, view=self) or []
        counts = messages_counted(self.user_id, [row.id for row in shown])
        return pages.get_paginated_response([conversation_json(row, counts.get(row.id, 0)) for row in shown])


class ConversationView(UserView):
    """`GET PATCH DELETE /conversations/{id}/`."""

    @extend_schema(operation_id="conversations_get", responses=ConversationDetailOutput)
    def get(self, request: Request, conversation_id: str) -> Response:
        """Read a conversation: its title and summary, but not its messages."""
        found = conversation_get(self.user_id, conversation_id)
        counts = messages_counted(self.user_id, [found.id])
        return Response(conversation_json(found, counts.get(found.id, 0)) | {"summary": found.summary})

    @extend_schema(
        operation_id="conversations_rename", request=RenameInput, responses=ConversationDetailOutput
    )
    def patch(self, request: Request, conversation_id: str) -> Response:
        """Rename a conversation."""
        services.conversation_rename(
            user_id=self.user_id, conversation_id=conversation_id, title=body_of(request).get("title")
        )
        return self.get(request, conversation_id)

    @extend_schema(operation_id="conversations_delete", responses={204: None})
    def delete(self, request: Request, conversation_id: str) -> Response:
        """Delete a conversation with its messages. Memories made from it stay."""
        services.conversation_delete(user_id=self.user_id, conversation_id=conversation_id)
        return Response(status=204)


class MessagesView(UserView):
    """`GET /conversations/{id}/messages/`: oldest first; with `before`, the page that ends before that message."""

    @extend_schema(
        operation_id="conversations_messages",
        parameters=[
            OpenApiParameter("before", str, description="A message's id: only what was said before it.")
        ],
        responses=page_of("MessagePage", MessageOutput(many=True)),
    )
    def get(self, request: Request, conversation_id: str) -> Response:
        """List the messages of a conversation, oldest first. With `before`, the page that ends before that message."""
        conversation = conversation_get(self.user_id, conversation_id)
        rows = readable_messages(conversation)
        if (before := request.query_params.get("before")) is not None:
            mark = (
                Message.objects.for_user(self.user_id)
                .filter(conversation=conversation, id=parse_id(before))
                .first()
            )
            if mark is None:
                raise NotFound("There is no message with this id in this conversation.")
            rows = rows.filter(position__lt=mark.position).order_by("-position")
        pages = Pages()
        shown: list[Message] = pages.paginate_queryset(rows, request, view=self) or []
        ordered = sorted(shown, key=lambda row: row.position)
        return pages.get_paginated_response(messages_json(self.user_id, ordered))


class IngestView(UserView):
    """`POST /ingest/`: messages of a conversation held elsewhere, searchable when the call returns."""

    throttle_scope = "ingest"

    @extend_schema(operation_id="ingest", request=IngestInput, responses={202: IngestOutput})
    def post(self, request: Request) -> Response:
        """Take in messages of a conversation held elsewhere. They are searchable when this answers."""
        body = body_of(request)
        extract = flag(body, "extract", True)
        done = services.messages_ingest(
            user_id=self.user_id,
            session=body.get("session"),
            channel=body.get("channel"),
            messages=body.get("messages"),
            extract=extract is not False,
        )
        return Response(
            {
                "conversation": str(done.conversation_id),
                "added": len(done.added),
                "repeated": done.repeated,
                "skipped": done.skipped,
                "ids": [str(value) for value in done.added],
            },
            status=202,
        )
