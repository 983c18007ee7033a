"""Folders that a user sorts conversations into: what is in them, and every write of them. A conversation is in one at most; a
folder that goes leaves its conversations where they are."""

from collections.abc import Collection
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet, Window
from django.db.models.functions import RowNumber

from apps.chat.conversations.selectors import CHAT_CHANNEL, conversations_for
from apps.chat.models import Conversation, Folder
from apps.core.db.prepared import prepared
from apps.core.errors import Conflict, InvalidInput, NotFound
from apps.core.ids import parse_id
from apps.core.text import clean_text, fold

MAX_NAME = 60
MAX_FOLDERS = 100
MAX_AT_ONCE = 200
SHOWN = 8
"""Conversations that the list beside every page shows of an open folder."""


def folders_for(user_id: UUID) -> QuerySet[Folder]:
    """The user's folders by name."""
    return Folder.objects.for_user(user_id).order_by("name", "id")


def folders_counted(user_id: UUID) -> QuerySet[Folder]:
    """The same, each with `conversations`, how many the user's list has in it."""
    listed = Q(conversation__deleted_at=None, conversation__archived=False)
    return folders_for(user_id).annotate(conversations=Count("conversation", filter=listed))


def folder_get(user_id: UUID, folder_id: object) -> Folder:
    """NotFound for an id that is unknown, malformed or somebody else's."""
    found = Folder.objects.for_user(user_id).filter(id=parse_id(folder_id)).first()
    if found is None:
        raise NotFound("There is no folder with this id.")
    return found


def folders_listed(user_id: UUID) -> list[Folder]:
    """The folders as the list beside every page shows them: an open one with its newest conversations (`rows`), and whether it
    has more (`more`). Pinned ones stand above all folders instead."""
    folders = _folders(user_id)
    rows: dict[UUID, list[Conversation]] = {folder.pk: [] for folder in folders if folder.opened}
    for row in _in_opened(user_id) if rows else ():
        if row.folder_id:
            rows[row.folder_id].append(row)
    for folder in folders:
        found = rows.get(folder.pk, [])
        folder.rows, folder.more = found[:SHOWN], len(found) > SHOWN  # type: ignore[attr-defined]
    return folders


@prepared
def _folders(user_id: UUID) -> QuerySet[Folder]:
    return folders_for(user_id)


@prepared
def _in_opened(user_id: UUID) -> QuerySet[Conversation]:
    place = Window(
        RowNumber(),
        partition_by=F("folder_id"),
        order_by=[F("updated_at").desc(), F("id").desc()],
    )
    within = conversations_for(user_id).filter(folder__opened=True, archived=False, pinned=False)
    return within.annotate(place=place).filter(place__lte=SHOWN + 1)


@transaction.atomic
def folder_create(*, user_id: UUID, name: object) -> Folder:
    """An empty folder. InvalidInput and TooLarge for the name, Conflict (`folder_exists`, `too_many_folders`)."""
    given = _name(user_id, name)
    if Folder.objects.for_user(user_id).count() >= MAX_FOLDERS:
        raise Conflict(f"There are {MAX_FOLDERS} folders already.", code="too_many_folders")
    return Folder.objects.create(user_id=user_id, name=given)


@transaction.atomic
def folder_change(
    *, user_id: UUID, folder_id: object, name: object = None, opened: bool | None = None
) -> Folder:
    """Renames a folder, or opens or closes it in the list beside every page. Errors as for `folder_create`, and NotFound."""
    folder = folder_get(user_id, folder_id)
    if name is not None:
        folder.name = _name(user_id, name, other_than=folder.pk)
    if opened is not None:
        folder.opened = opened
    folder.save(update_fields=["name", "opened"])
    return folder


@transaction.atomic
def folder_delete(*, user_id: UUID, folder_id: object) -> int:
    """Takes the folder away; its conversations stay, in none. Returns how many the list shows again. NotFound."""
    folder = folder_get(user_id, folder_id)
    within = Conversation.objects.unscoped().filter(user_id=user_id, folder=folder)
    listed = within.filter(deleted_at=None, archived=False).count()
    within.update(folder=None)
    folder.delete()
    return listed


@transaction.atomic
def conversations_file(
    *, user_id: UUID, conversation_ids: Collection[UUID], folder_id: object | None
) -> int:
    """Moves conversations into a folder, or with None out of theirs: all of them, or none where one is not there; how many.
    NotFound, InvalidInput for too many or one that a program ingested."""
    folder = None if folder_id is None else folder_get(user_id, folder_id)
    return _each(user_id, conversation_ids, folder=folder)


@transaction.atomic
def conversations_archive(*, user_id: UUID, conversation_ids: Collection[UUID], archived: bool) -> int:
    """Archives conversations or brings them back, as `conversations_file` moves them."""
    return _each(user_id, conversation_ids, archived=archived)


def _each(user_id: UUID, conversation_ids: Collection[UUID], **values: Any) -> int:
    keys = set(conversation_ids)
    if len(keys) > MAX_AT_ONCE:
        raise InvalidInput(f"At most {MAX_AT_ONCE} conversations can be changed at once.")
    rows = Conversation.objects.owned_by(user_id).filter(id__in=keys, channel=CHAT_CHANNEL)
    if rows.update(**values) < len(keys):
        raise NotFound("Nothing was changed: one of these conversations is no longer there.")
    return len(keys)


def _name(user_id: UUID, name: object, *, other_than: UUID | None = None) -> str:
    given = " ".join(clean_text(name, field="name", max_chars=MAX_NAME).split())
    names = Folder.objects.for_user(user_id).values_list("pk", "name")
    if fold(given) in {fold(each) for key, each in names if key != other_than}:
        raise Conflict("There is a folder of this name already.", code="folder_exists", field="name")
    return given
