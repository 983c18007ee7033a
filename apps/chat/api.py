"""REST: conversations and what was said in them, and taking in conversations held elsewhere."""

from typing import Annotated, Any
from uuid import UUID

from pydantic import Field
from rest_framework.request import Request

from apps.chat.conversations import services
from apps.chat.conversations.folders import folder_get
from apps.chat.conversations.ingest import (
    DEFAULT_CHANNEL,
    MAX_CHANNEL_CHARS,
    MAX_MESSAGES,
    MAX_SESSION_CHARS,
    IngestMessageInput,
    SkippedMessage,
    channel_checked,
    messages_ingest,
    messages_listed,
    session_checked,
)
from apps.chat.conversations.messages import MessageOutput, messages_json, readable_messages
from apps.chat.conversations.selectors import (
    conversation_get,
    conversations_for,
    conversations_search,
    messages_counted,
)
from apps.chat.conversations.services import MAX_INSTRUCTIONS, MAX_MODEL
from apps.chat.models import MAX_TITLE, Conversation, Message
from apps.core.errors import NotFound
from apps.core.http.rest import Listed, UserView, operation
from apps.core.http.shapes import (
    ABSENT,
    Beside,
    Checked,
    Id,
    Moment,
    NoteId,
    OpenInput,
    Query,
    Refused,
    Shape,
    page_of,
    text,
)
from apps.core.text import NOT_BLANK
from apps.memory.models import Origin
from apps.memory.notes.with_conversation import notes_from

SESSION = {"type": "string", "minLength": 1, "maxLength": MAX_SESSION_CHARS, "pattern": NOT_BLANK}
CHANNEL = {"type": "string", "maxLength": MAX_CHANNEL_CHARS, "nullable": True}
MESSAGES = {
    "type": "array",
    "items": {"anyOf": [IngestMessageInput, SkippedMessage]},
    "minItems": 1,
    "maxItems": MAX_MESSAGES,
}


class ConversationsQuery(Query):
    q: str = Field("", max_length=1_000, description="Only those whose title or text fits.")
    channel: str = Field("", max_length=64, description="Only this channel; `chat` is Izzy's own.")
    pinned: bool | None = Field(None, description="Only those that are pinned, or not.")
    archived: bool | None = Field(None, description="Only those that are archived, or not.")
    folder: NoteId = Field(ABSENT, description="Only those in this folder.")


class MessagesQuery(Query):
    before: NoteId = Field(ABSENT, description="A message's id: only what was said before it.")


class ConversationDeleteQuery(Query):
    memories: bool = Field(
        False,
        description="Delete the memories that came from it too (restorable for 30 days); else they stay.",
    )


class ConversationInput(OpenInput):
    title: Annotated[str, text(MAX_TITLE, allow_empty=True)] = ABSENT
    use_memory: bool = ABSENT
    folder: Id | None = Field(None, description="The folder to put it into.")


class ConversationChangeInput(OpenInput):
    title: Annotated[str, text(MAX_TITLE)] = ABSENT
    pinned: bool = Field(ABSENT, description="Above the others in the user's list.")
    archived: bool = Field(ABSENT, description="Out of the user's list; a search finds it all the same.")
    folder: Id | None = Field(
        ABSENT, description="The folder to move it to; null takes it out of its own."
    )

    model: Annotated[str, text(MAX_MODEL, allow_empty=True)] = Field(
        ABSENT, description="The model that answers in it; empty for the one of the preferences."
    )
    instructions: Annotated[str, text(MAX_INSTRUCTIONS, allow_empty=True)] = Field(
        ABSENT, description="What holds in it beside the user's own instructions."
    )


class IngestInput(OpenInput):
    session: Annotated[str, Checked(lambda value, field: session_checked(value), SESSION)]
    channel: Annotated[str, Checked(lambda value, field: channel_checked(value), CHANNEL)] = (
        DEFAULT_CHANNEL
    )
    messages: Annotated[
        list[Any], Checked(lambda value, field: messages_listed(value), MESSAGES), Refused("")
    ]
    extract: bool = Field(
        True, description="Whether the messages are read for what is worth remembering."
    )


class ConversationOutput(Shape):
    id: UUID
    title: str
    channel: str
    session: str
    use_memory: bool
    pinned: bool
    archived: bool
    folder: UUID | None = Field(validation_alias="folder_id")
    messages: int = Field(description="How many a reader sees.")
    created_at: Moment
    updated_at: Moment


class ConversationDetailOutput(ConversationOutput):
    model: str = Field(description="The model that answers in it; empty: the one of the preferences.")
    instructions: str
    summary: str = Field(
        description="What stands in the prompt for the messages that were summed up; empty where none were."
    )
    memories: int = Field(
        description="How many memories came from it; `/memories/?conversation=<id>` lists them."
    )


class IngestOutput(Shape):
    conversation: UUID
    added: int
    repeated: int = Field(description="Messages whose external_id had come before.")
    skipped: int = Field(description="Messages that nobody said: system text and tool output.")
    ids: list[UUID] = Field(description="Of the added messages, in order.")


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
        marks = {"pinned": given.pinned, "archived": given.archived}
        wanted: dict[str, Any] = {name: value for name, value in marks.items() if value is not None}
        if given.folder:
            wanted["folder_id"] = folder_get(self.user_id, given.folder).pk
        if given.q:
            found = conversations_search(self.user_id, given.q, limit=200, channel=channel)
            rows = [row for row, _ in found if wanted.items() <= vars(row).items()]
        else:
            rows = rows.filter(**wanted)
        return Listed(rows, self._counted)

    def _counted(self, rows: list[Conversation]) -> list[Beside]:
        counts = messages_counted(self.user_id, [row.id for row in rows])
        return [Beside(row, title=str(row), messages=counts.get(row.id, 0)) for row in rows]

    @operation("conversations_create", body=ConversationInput, answer=ConversationOutput, status=201)
    def post(self, request: Request) -> Beside:
        """Begin an empty conversation."""
        body = self.body(ConversationInput)
        row = services.conversation_create(
            user_id=self.user_id,
            title=body.title or "",
            use_memory=body.use_memory,
            folder=folder_get(self.user_id, body.folder) if body.folder else None,
        )
        return Beside(row, title=str(row), messages=0)


class ConversationView(UserView):
    """`GET PATCH DELETE /conversations/{id}/`."""

    @operation("conversations_get", answer=ConversationDetailOutput)
    def get(self, request: Request, conversation_id: str) -> Beside:
        """Read a conversation: its title and summary, but not its messages."""
        return self._read(conversation_id)

    @operation("conversations_update", body=ConversationChangeInput, answer=ConversationDetailOutput)
    def patch(self, request: Request, conversation_id: str) -> Beside:
        """Rename, pin, archive or move a conversation, or give it a model and instructions of its own."""
        key = conversation_get(self.user_id, conversation_id).id
        given = self.body(ConversationChangeInput)
        services.conversation_change(
            user_id=self.user_id,
            conversation_id=key,
            title=given.title,
            pinned=given.pinned,
            archived=given.archived,
            folder=folder_get(self.user_id, given.folder) if given.folder else None,
            unfile="folder" in given.model_fields_set and given.folder is None,
            model=given.model,
            instructions=given.instructions,
        )
        return self._read(key)

    def _read(self, conversation_id: object) -> Beside:
        found = conversation_get(self.user_id, conversation_id)
        counts = messages_counted(self.user_id, [found.id])
        memories = notes_from(self.user_id, found.id).count()
        return Beside(found, title=str(found), messages=counts.get(found.id, 0), memories=memories)

    @operation("conversations_delete", query=ConversationDeleteQuery, status=204)
    def delete(self, request: Request, conversation_id: str) -> None:
        """Delete a conversation with its messages. Memories made from it stay, unless asked otherwise."""
        services.conversation_delete(
            user_id=self.user_id,
            conversation_id=conversation_id,
            memories=self.query(ConversationDeleteQuery).memories,
            actor=Origin.API if request.auth else Origin.USER,
        )


class MessagesView(UserView):
    """`GET /conversations/{id}/messages/`: oldest first; with `before`, the page that ends before that message."""

    @operation(
        "conversations_messages", query=MessagesQuery, answer=page_of("MessagePage", MessageOutput)
    )
    def get(self, request: Request, conversation_id: str) -> Listed:
        """List the messages of a conversation, oldest first. With `before`, the page that ends before that message."""
        conversation = conversation_get(self.user_id, conversation_id)
        rows = readable_messages(conversation)
        if (before := self.query(MessagesQuery).before) is not None:
            mark = (
                Message.objects.for_user(self.user_id)
                .filter(conversation=conversation, id=before)
                .first()
            )
            if mark is None:
                raise NotFound("There is no message with this id in this conversation.")
            rows = rows.filter(position__lt=mark.position).order_by("-position")
        return Listed(
            rows, lambda shown: messages_json(self.user_id, sorted(shown, key=lambda row: row.position))
        )


class IngestView(UserView):
    """`POST /ingest/`: messages of a conversation held elsewhere, searchable when the call returns."""

    throttle_scope = "ingest"

    @operation("ingest", body=IngestInput, answer=IngestOutput, status=202)
    def post(self, request: Request) -> Beside:
        """Take in messages of a conversation held elsewhere. They are searchable when this answers."""
        body = self.body(IngestInput)
        done = messages_ingest(
            user_id=self.user_id,
            session=body.session,
            channel=body.channel,
            messages=body.messages,
            extract=body.extract,
        )
        return Beside(done, conversation=done.conversation_id, added=len(done.added), ids=done.added)
