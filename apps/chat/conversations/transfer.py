"""The records of conversations, as an export has them and as other programs' files give them; and how folders are taken in: one of the
same name is the same folder."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

from apps.agent.models import ToolCall
from apps.chat.attachments.records import attachment_rows, attachments_plan
from apps.chat.conversations.folders import MAX_FOLDERS, MAX_NAME
from apps.chat.models import Attachment, Conversation, Folder, Message, Turn
from apps.core.db.writing import insert_all
from apps.core.http.shapes import text
from apps.core.text import fold
from apps.core.transfer import (
    KNOWN,
    OWN_ONLY,
    Entry,
    RecordGroup,
    RecordId,
    RecordInput,
    RecordTime,
    Row,
    Taking,
    Write,
    ids_here,
    paged,
    record_groups,
    row_of,
    shaped,
)

from .documents import conversation_document, conversation_documents
from .foreign import foreign_plan
from .records import conversation_rows
from .taking import conversations_plan

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
