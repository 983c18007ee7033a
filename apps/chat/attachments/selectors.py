"""Reads of attachments. Their text is fetched where it is asked for alone."""

import json
from collections.abc import Iterable
from uuid import UUID

from django.db.models import QuerySet, Sum

from apps.chat.models import Attachment, Message
from apps.core.errors import NotFound
from apps.core.ids import parse_id

TYPE = "attachment"
MARK = f'"type":"{TYPE}"'
"""Stands in the blocks of a message beside which there are files."""
PART_CHARS = 16_000


def attachments_for(user_id: UUID) -> QuerySet[Attachment]:
    """The user's, newest first, without those of conversations that are being deleted."""
    rows = Attachment.objects.for_user(user_id).filter(conversation__deleted_at=None)
    return rows.defer("text").order_by("-created_at")


def attachment_get(user_id: UUID, key: object) -> Attachment:
    """NotFound for what is not the user's."""
    row = attachments_for(user_id).filter(pk=parse_id(key)).first()
    if row is None:
        raise NotFound("There is no attachment with this id.")
    return row


def bytes_kept(user_id: UUID) -> int:
    """How much the files of a user take."""
    return Attachment.objects.for_user(user_id).aggregate(size=Sum("size"))["size"] or 0


def ids_in(blocks: str) -> list[UUID]:
    """The attachments that a message's blocks name, in their order; the rows may be gone."""
    if MARK not in blocks:
        return []
    return [UUID(block["id"]) for block in json.loads(blocks) if block.get("type") == TYPE]


def attachments_by_message(user_id: UUID, messages: Iterable[Message]) -> dict[UUID, list[Attachment]]:
    """The attachments of these messages that are still there, by message; one query, none where there are none."""
    named = {row.pk: keys for row in messages if (keys := ids_in(row.blocks))}
    if not named:
        return {}
    wanted = {key for keys in named.values() for key in keys}
    rows = Attachment.objects.owned_by(user_id).defer("text").in_bulk(list(wanted))
    return {pk: [rows[key] for key in keys if key in rows] for pk, keys in named.items()}


def text_part(row: Attachment, offset: int) -> tuple[str, int | None]:
    """A part of what was read of it, ending with a paragraph or line where one ends near; and where the next begins."""
    end = min(offset + PART_CHARS, row.characters)
    if end < row.characters:
        places = [
            row.text.rfind(mark, offset + PART_CHARS * 3 // 4, end) + 1 for mark in ("\n\n", "\n", " ")
        ]
        end = next((place for place in places if place > 0), end)
    return row.text[offset:end], end if end < row.characters else None


def page_offset(row: Attachment, page: int) -> int | None:
    """Where a page of a PDF begins in its text; None where there is no such page, or nothing was read of it."""
    mark = f"[Page {page}]\n"
    if row.text.startswith(mark):
        return 0
    place = row.text.find(f"\n\n{mark}")
    return place + 2 if place >= 0 else None
