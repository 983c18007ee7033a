"""Records of folders, and how they are taken in: one of the same name is the same folder."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

from apps.chat.conversations.folders import MAX_FOLDERS, MAX_NAME
from apps.chat.models import Folder
from apps.core.db.writing import insert_all
from apps.core.http.shapes import text
from apps.core.text import fold
from apps.core.transfer import (
    KNOWN,
    OWN_ONLY,
    Entry,
    RecordId,
    RecordInput,
    RecordTime,
    Row,
    Taking,
    Write,
    ids_here,
    paged,
    row_of,
    shaped,
)

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
