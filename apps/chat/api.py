"""REST: conversations and what was said in them, and taking in conversations held elsewhere."""

from typing import Any

from rest_framework.request import Request

from apps.chat import services
from apps.chat.inputs import (
    ConversationInput,
    ConversationsQuery,
    IngestInput,
    MessagesQuery,
    RenameInput,
)
from apps.chat.models import Conversation, Message
from apps.chat.selectors.conversations import (
    conversation_get,
    conversations_for,
    messages_counted,
)
from apps.chat.selectors.finding import conversations_search
from apps.chat.selectors.messages import messages_json, readable_messages
from apps.chat.shapes import ConversationDetailOutput, ConversationOutput, IngestOutput, MessageOutput
from apps.core.errors import NotFound
from apps.core.rest_views import Listed, UserView, operation
from apps.core.shapes import Beside, page_of


class ConversationsView(UserView):
    """`GET POST /conversations/`."""

    @operation(
        "conversations_list",
        query=ConversationsQuery,
        answer=page_of("ConversationPage", ConversationOutput),
    )
    def get(self, request: Request) -> Listed:
        """List conversations, newest first, or those that fit a search."""
        given = self.query(ConversationsQuery)
        channel = given.channel or None
        rows: Any = conversations_for(self.user_id, channel=channel)
        if given.q:
            found = conversations_search(self.user_id, given.q, limit=200, channel=channel)
            rows = [each.conversation for each in found]
        return Listed(rows, self._counted)

    def _counted(self, rows: list[Conversation]) -> list[Beside]:
        counts = messages_counted(self.user_id, [row.id for row in rows])
        return [Beside(row, title=str(row), messages=counts.get(row.id, 0)) for row in rows]

    @operation("conversations_create", body=ConversationInput, answer=ConversationOutput, status=201)
    def post(self, request: Request) -> Beside:
        """Begin an empty conversation."""
        body = self.body(ConversationInput)
        row = services.conversation_create(
            user_id=self.user_id, title=body.title or "", use_memory=body.use_memory
        )
        return Beside(row, title=str(row), messages=0)


class ConversationView(UserView):
    """`GET PATCH DELETE /conversations/{id}/`."""

    @operation("conversations_get", answer=ConversationDetailOutput)
    def get(self, request: Request, conversation_id: str) -> Beside:
        """Read a conversation: its title and summary, but not its messages."""
        return self._read(conversation_id)

    @operation("conversations_rename", body=RenameInput, answer=ConversationDetailOutput)
    def patch(self, request: Request, conversation_id: str) -> Beside:
        """Rename a conversation."""
        key = conversation_get(self.user_id, conversation_id).id
        title = self.body(RenameInput).title
        services.conversation_rename(user_id=self.user_id, conversation_id=key, title=title)
        return self._read(key)

    def _read(self, conversation_id: object) -> Beside:
        found = conversation_get(self.user_id, conversation_id)
        counts = messages_counted(self.user_id, [found.id])
        return Beside(found, title=str(found), messages=counts.get(found.id, 0))

    @operation("conversations_delete", status=204)
    def delete(self, request: Request, conversation_id: str) -> None:
        """Delete a conversation with its messages. Memories made from it stay."""
        services.conversation_delete(user_id=self.user_id, conversation_id=conversation_id)


class MessagesView(UserView):
    """`GET /conversations/{id}/messages/`: oldest first; with `before`, the page that ends before that message."""

    @operation("conversations_messages", query=MessagesQuery, answer=page_of("MessagePage", MessageOutput))
    def get(self, request: Request, conversation_id: str) -> Listed:
        """List the messages of a conversation, oldest first. With `before`, the page that ends before that message."""
        conversation = conversation_get(self.user_id, conversation_id)
        rows = readable_messages(conversation)
        if (before := self.query(MessagesQuery).before) is not None:
            mark = Message.objects.for_user(self.user_id).filter(conversation=conversation, id=before).first()
            if mark is None:
                raise NotFound("There is no message with this id in this conversation.")
            rows = rows.filter(position__lt=mark.position).order_by("-position")
        return Listed(rows, self._in_order)

    def _in_order(self, shown: list[Message]) -> list[dict[str, Any]]:
        return messages_json(self.user_id, sorted(shown, key=lambda row: row.position))


class IngestView(UserView):
    """`POST /ingest/`: messages of a conversation held elsewhere, searchable when the call returns."""

    throttle_scope = "ingest"

    @operation("ingest", body=IngestInput, answer=IngestOutput, status=202)
    def post(self, request: Request) -> Beside:
        """Take in messages of a conversation held elsewhere. They are searchable when this answers."""
        body = self.body(IngestInput)
        done = services.messages_ingest(
            user_id=self.user_id,
            session=body.session,
            channel=body.channel,
            messages=body.messages,
            extract=body.extract,
        )
        return Beside(done, conversation=done.conversation_id, added=len(done.added), ids=done.added)
