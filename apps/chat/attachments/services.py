"""Writes of attachments: brought, put beside a message, kept under /memories, deleted."""

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import PurePosixPath
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.chat.attachments import files
from apps.chat.attachments.kinds import clean_name
from apps.chat.attachments.reading import Inspected, inspect
from apps.chat.attachments.selectors import attachment_get, bytes_kept
from apps.chat.models import Attachment, AttachmentKind, Conversation
from apps.core.db.writing import SLICE, users_of
from apps.core.errors import Conflict, InvalidInput, NotFound, TooLarge
from apps.core.ids import parse_id, uuid7
from apps.core.jobs.fair import one_by_one
from apps.memory.files.selectors import file_at
from apps.memory.files.services import file_write
from apps.memory.files.texts import MAX_NAME_BYTES, ROOT, clean_path
from apps.memory.models import MemoryFile, Trust
from apps.memory.notes.revisions import BY_USER, Change

MAX_PER_MESSAGE = 10
MAX_UNSENT = 50
UNSENT_FOR = timedelta(days=1)
"""Files that were uploaded and never sent go after so long."""
INSPECTED = ("kind", "media_type", "shown_type", "text", "whole", "pages", "width", "height")
"""Fields of `Attachment` that follow from the file."""
FOLDER = f"{ROOT}/attachments"
MAX_SUFFIX_CHARS = 12
"""A longer ending of a name is no file's ending, but words after a full stop."""


def attachment_add(
    *, user_id: UUID, name: object, body: bytes, conversation: object = None
) -> Attachment:
    """Takes in a file, for a message that is yet to be sent. Raises what `inspect` does, TooLarge for one over
    IZZY_ATTACHMENT_LIMIT, Conflict `quota_exceeded` and `too_many_unsent`, NotFound for the conversation."""
    called, limit = clean_name(name), settings.IZZY_ATTACHMENT_LIMIT
    if len(body) > limit:
        raise TooLarge(
            f"“{called}” has {megabytes(len(body))}; at most {megabytes(limit)} can be attached.",
            field="file",
            limit=limit,
        )
    place = None
    if conversation is not None:
        place = Conversation.objects.for_user(user_id).filter(pk=parse_id(conversation)).first()
        if place is None:
            raise NotFound("There is no conversation with this id.")
    _check_room(user_id, len(body))
    found = inspect(called, body)
    row = made_row(user_id, uuid7(), called, body, found)
    try:
        files.file_write(row, body, found.picture)
        with transaction.atomic():
            _check_room(user_id, len(body))
            row.save(force_insert=True)
    except BaseException:
        files.files_remove(user_id, [row.pk])
        raise
    return row


def made_row(user_id: UUID, key: UUID, name: str, body: bytes, found: Inspected) -> Attachment:
    """A row of what was found in a file; not stored yet."""
    return Attachment(
        pk=key,
        user_id=user_id,
        name=clean_name(name),
        size=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        characters=len(found.text),
        tokens=found.tokens,
        **{each: getattr(found, each) for each in INSPECTED},
    )


def megabytes(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB".replace(".0 ", " ")


def quota_check(size: int) -> None:
    """Raises Conflict `quota_exceeded` where the files of a user may not take so many bytes."""
    quota = settings.IZZY_ATTACHMENT_QUOTA
    if size > quota:
        raise Conflict(
            f"Your attachments would take more than the {megabytes(quota)} that they may. Delete some of them, or conversations "
            "that have some.",
            code="quota_exceeded",
            limit=quota,
        )


def _check_room(user_id: UUID, size: int) -> None:
    quota_check(bytes_kept(user_id) + size)
    if Attachment.objects.for_user(user_id).filter(conversation=None).count() >= MAX_UNSENT:
        raise Conflict(
            f"{MAX_UNSENT} files wait to be sent already. Send or remove some.", code="too_many_unsent"
        )


def attachments_take(
    user_id: UUID, conversation: Conversation, given: object, *, had: Collection[UUID] = ()
) -> list[UUID]:
    """Puts these attachments into the conversation and returns their ids in order, each once. Call it in a transaction.

    InvalidInput for more than ten and for what is no list; NotFound for one that is not the user's, or another conversation's.
    Those that the message `had` before stay even where their file was deleted.
    """
    if not isinstance(given, list | tuple):
        raise InvalidInput("attachments must be a list of ids.", code="wrong_type", field="attachments")
    keys = list(dict.fromkeys(map(parse_id, given[: MAX_PER_MESSAGE + 1])))
    if len(given) > MAX_PER_MESSAGE:
        raise InvalidInput(
            f"A message can have {MAX_PER_MESSAGE} attachments.",
            field="attachments",
            limit=MAX_PER_MESSAGE,
        )
    if not keys:
        return []
    rows = Attachment.objects.for_user(user_id).filter(pk__in=keys).only("pk", "conversation_id")
    there = {row.pk: row.conversation_id for row in rows}
    for key in keys:
        if key in there and there[key] in (None, conversation.pk):
            continue
        if key not in there and key in had:
            continue
        raise NotFound(
            "An attached file is not there any more. Attach it again.", field="attachments", id=str(key)
        )
    new = [key for key, place in there.items() if place is None]
    Attachment.objects.for_user(user_id).filter(pk__in=new).update(conversation=conversation)
    return keys


@transaction.atomic
def attachment_delete(*, user_id: UUID, attachment_id: object, unsent: bool = False) -> None:
    """Deletes a file for good. Messages that had it say so to the model; what was said about it stays. With `unsent` one that was
    sent stays."""
    row = attachment_get(user_id, attachment_id)
    if not (unsent and row.conversation_id is not None):
        attachments_remove(user_id, Attachment.objects.for_user(user_id).filter(pk=row.pk))


def attachments_remove(user_id: UUID, rows: QuerySet[Attachment], *, room: int = SLICE) -> int:
    """Removes at most so many of the rows, and their files once the transaction is over; returns how many."""
    keys = list(rows.order_by().values_list("pk", flat=True)[:room])
    if keys:
        Attachment.objects.for_user(user_id).filter(pk__in=keys).delete()
        files.files_go(user_id, keys)
    return len(keys)


def attachment_keep(
    *, user_id: UUID, attachment_id: object, path: object = None, change: Change = BY_USER
) -> MemoryFile:
    """Puts what was read of a file under /memories, as others' words. Where no path is named it goes by its name.

    InvalidInput for an image, or a PDF without text; Conflict for a path that is taken; TooLarge as for any file there.
    """
    row = attachment_get(user_id, attachment_id)
    if not row.characters:
        kind = "an image" if row.kind == AttachmentKind.IMAGE else "a PDF without text"
        raise InvalidInput(f"Only text can be put under {ROOT}; “{row.name}” is {kind}.", code="no_text")
    place = clean_path(path) if path else _free_path(user_id, row)
    foreign = replace(change, trust=Trust.UNTRUSTED)
    return file_write(user_id=user_id, path=place, text=row.text, new=True, change=foreign)


def _free_path(user_id: UUID, row: Attachment) -> str:
    """A path that nothing lies at yet, by the file's name, or as much of that as has room in the bytes of a name."""
    name = PurePosixPath(row.name.replace("%", "_"))
    known = row.kind == AttachmentKind.TEXT and 0 < len(name.suffix) <= MAX_SUFFIX_CHARS
    suffix, number = name.suffix if known else ".txt", 1
    while True:
        ending = f" {number}{suffix}" if number > 1 else suffix
        room = MAX_NAME_BYTES - len(ending.encode())
        stem = name.stem.encode()[:room].decode(errors="ignore").strip(" .") or "file"
        path = clean_path(f"{FOLDER}/{stem}{ending}")
        if file_at(user_id, path) is None:
            return path
        number += 1


def attachments_prune() -> None:
    """Sweep: removes what was brought a day ago and never sent."""
    old = Attachment.objects.unscoped().filter(
        conversation=None, created_at__lt=timezone.now() - UNSENT_FOR
    )
    one_by_one(users_of(old.order_by()), _prune_own)


@transaction.atomic
def _prune_own(whose: tuple[UUID, QuerySet[Attachment]]) -> None:
    attachments_remove(*whose)


def user_attachments_forget(user_id: UUID) -> int:
    """Before an account goes: its attachments, and their files once it is gone."""
    rows = Attachment.objects.unscoped().filter(user_id=user_id)
    keys: Sequence[UUID] = list(rows.values_list("pk", flat=True))
    rows.delete()
    files.files_go(user_id, keys)
    return len(keys)
