"""The records of conversations, as an export has them and as other programs' files give them; their Markdown; and how folders are
taken in: one of the same name is the same folder."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

from apps.agent.models import ToolCall
from apps.chat.attachments.records import attachment_rows, attachments_plan
from apps.chat.conversations.folders import MAX_FOLDERS, MAX_NAME
from apps.chat.conversations.messages import readable_messages
from apps.chat.conversations.selectors import conversation_get
from apps.chat.models import Attachment, Conversation, Folder, Message, Role, Turn
from apps.core.db.writing import insert_all
from apps.core.http.shapes import text
from apps.core.text import fold
from apps.core.transfer import (
    KNOWN,
    OWN_ONLY,
    Document,
    Entry,
    RecordGroup,
    RecordId,
    RecordInput,
    RecordTime,
    Row,
    Taking,
    Write,
    file_name,
    front_matter,
    ids_here,
    paged,
    record_groups,
    row_of,
    shaped,
)

from .foreign import foreign_plan
from .records import conversation_rows
from .taking import conversations_plan

AT_ONCE = 200


def conversation_documents(user_id: UUID) -> Iterator[Document]:
    """All conversations, each a file in the folder of its channel."""
    for conversation in paged(Conversation.objects.for_user(user_id).defer("tools"), 50):
        yield _document(conversation)


def conversation_document(user_id: UUID, conversation_id: UUID) -> Document:
    """One conversation; NotFound for one that is not the user's."""
    return _document(conversation_get(user_id, conversation_id))


def _document(conversation: Conversation) -> Document:
    day = conversation.created_at.date().isoformat()
    name = file_name(conversation.title or "Conversation", conversation.id)
    channel = file_name(conversation.channel, conversation.id).rpartition(" (")[0]
    path = f"conversations/{channel}/{day} {name}.md"
    return Document(path, _parts(conversation), conversation.updated_at)


def _parts(conversation: Conversation) -> Iterator[str]:
    yield front_matter(
        id=str(conversation.id),
        title=conversation.title,
        channel=conversation.channel,
        session=conversation.session,
        created=conversation.created_at,
        updated=conversation.updated_at,
    )
    yield f"# {conversation.title or 'Conversation'}\n"
    position = 0
    while True:
        rows = readable_messages(conversation).filter(position__gt=position)
        some = list(
            rows.select_related(None).only("position", "role", "speaker", "text", "created_at")[:AT_ONCE]
        )
        if not some:
            return
        for message in some:
            if message.text:
                plain = "You" if message.role == Role.USER else "Izzy"
                named = message.speaker not in {"", Role.USER, Role.ASSISTANT}
                who = " ".join(message.speaker.split()) if named else plain
                yield f"\n## {who} · {message.created_at:%Y-%m-%d %H:%M} UTC\n\n{message.text}\n"
        position = some[-1].position


TOO_MANY = f"There are {MAX_FOLDERS} folders already."


class FolderRecord(RecordInput):
    """A folder of conversations."""

    id: RecordId
    name: Annotated[str, text(MAX_NAME)]
    opened: bool = True
    created_at: RecordTime | None = None


def folder_rows(user_id: UUID) -> Iterator[Row]:
    for folder in paged(Folder.objects.for_user(user_id)):
        yield row_of("folder", FolderRecord, folder)


def folders_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans the folders of the user's own export. Conversations name theirs."""
    given = shaped(taking, entries, FolderRecord)
    ids = ids_here(taking, "folder", {record.id for _, record in given})
    here = {fold(each.name) for each in Folder.objects.for_user(taking.user_id)}
    new: list[Folder] = []
    for entry, record in given:
        if not taking.own:
            taking.report.skip(entry, OWN_ONLY)
        elif ids.known(record.id) or fold(record.name) in here:
            taking.report.skip(entry, KNOWN)
        elif len(here) >= MAX_FOLDERS:
            taking.report.skip(entry, TOO_MANY)
        else:
            here.add(fold(record.name))
            values = record.columns(Folder) | {"created_at": record.created_at or taking.now}
            new.append(Folder(id=ids[record.id], user_id=taking.user_id, **values))
            taking.report.take("folder")
    taking.fresh |= {folder.pk for folder in new}
    return partial(insert_all, new)


def register() -> None:
    """Called once, when the apps are ready."""
    record_groups.register(
        "folders",
        RecordGroup(
            rank=49,
            kinds=("folder",),
            plan=folders_plan,
            rows=folder_rows,
            tables={"folder": Folder},
        ),
    )
    record_groups.register(
        "conversations",
        RecordGroup(
            rank=50,
            kinds=("conversation", "turn", "message", "tool_call"),
            heads=("conversation",),
            plan=conversations_plan,
            rows=conversation_rows,
            documents=conversation_documents,
            document=conversation_document,
            tables={
                "conversation": Conversation,
                "turn": Turn,
                "message": Message,
                "tool_call": ToolCall,
            },
        ),
    )
    record_groups.register(
        "attachments",
        RecordGroup(
            rank=52,
            kinds=("attachment",),
            plan=attachments_plan,
            rows=attachment_rows,
            tables={"attachment": Attachment},
        ),
    )
    record_groups.register(
        "foreign conversations",
        RecordGroup(rank=51, kinds=("foreign_conversation",), plan=foreign_plan),
    )
