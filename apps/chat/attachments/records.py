"""Records of attachments, each with its file, and how they are taken in: read anew, as if they had just been brought."""

import binascii
import logging
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated
from uuid import UUID

from pydantic import Field

from apps.chat.attachments.files import file_read, file_write, files_remove
from apps.chat.attachments.kinds import NAME_CHARS, clean_name
from apps.chat.attachments.reading import Inspected, inspect
from apps.chat.attachments.selectors import bytes_kept
from apps.chat.attachments.services import made_row, quota_check
from apps.chat.models import Attachment
from apps.core.errors import InvalidInput, IzzyError, NotFound
from apps.core.http.shapes import Checked, text
from apps.core.transfer import (
    GONE,
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
    write_nothing,
)

logger = logging.getLogger(__name__)
AT_ONCE = 5
UNSTORED = "attachment_bytes"
"""A dry run's fact: bytes of the files that earlier batches would have stored."""


def _content(value: object, *, field: str) -> bytes:
    try:
        return b64decode(value if isinstance(value, str) else "!", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidInput(f"{field} must be a file in base64.", field=field) from None


class AttachmentRecord(RecordInput):
    """A file that was sent with a message, `content` in base64."""

    id: RecordId
    conversation: RecordId
    name: Annotated[str, text(NAME_CHARS)]
    content: Annotated[bytes, Checked(_content, {"type": "string", "format": "byte"})] = Field(
        repr=False
    )
    created_at: RecordTime


def attachment_rows(user_id: UUID) -> Iterator[Row]:
    """Each file that was sent with a message; one whose file is gone is left out."""
    rows = Attachment.objects.for_user(user_id).filter(
        conversation__isnull=False, conversation__deleted_at=None
    )
    for row in paged(rows.defer("text"), AT_ONCE):
        try:
            body = file_read(row)
        except NotFound:
            logger.warning("the file of attachment %s is gone: it is not exported", row.pk)
            continue
        yield row_of("attachment", AttachmentRecord, row, content=b64encode(body).decode())


def attachments_plan(taking: Taking, entries: Sequence[Entry]) -> Write:
    """Plans files of the user's own conversations, as many as IZZY_ATTACHMENT_QUOTA has room for; somebody else's export has none
    to take."""
    if not taking.own:
        for entry in entries:
            taking.report.skip(entry, OWN_ONLY)
        return write_nothing
    given = shaped(taking, entries, AttachmentRecord)
    ids = ids_here(taking, "attachment", {record.id for _, record in given})
    places = ids_here(taking, "conversation", {record.conversation for _, record in given})
    made: dict[UUID, tuple[Attachment, bytes, Inspected]] = {}
    unstored = int(taking.facts.get(UNSTORED, "0"))
    kept = bytes_kept(taking.user_id)
    for entry, record in given:
        key = ids[record.id]
        if ids.known(record.id) or key in made:
            taking.report.skip(entry, KNOWN)
        elif not places.known(record.conversation):
            taking.report.skip(entry, GONE)
        else:
            try:
                quota_check(kept + unstored + len(record.content))
                found = inspect(clean_name(record.name), record.content)
            except IzzyError as error:
                taking.report.refuse(entry, error.message)
                continue
            row = made_row(taking.user_id, key, record.name, record.content, found)
            row.conversation_id, row.created_at = places[record.conversation], record.created_at
            made[key] = (row, record.content, found)
            unstored += row.size
            taking.report.take("attachment")
    taking.fresh |= made.keys()
    if taking.dry_run:
        taking.facts[UNSTORED] = str(unstored)
    return partial(_store, taking.user_id, list(made.values())) if made else write_nothing


def _store(user_id: UUID, made: Sequence[tuple[Attachment, bytes, Inspected]]) -> None:
    keys = [row.pk for row, _, _ in made]
    files_remove(user_id, keys)  # of an earlier try that broke off
    for row, body, found in made:
        file_write(row, body, found.picture)
    Attachment.objects.bulk_create([row for row, _, _ in made])
