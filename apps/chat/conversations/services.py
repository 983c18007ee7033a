"""Writes of conversations themselves. One that is deleted is out of sight at once and gone slice by slice, so that nobody waits
for a long one to be removed."""

from collections.abc import Collection
from datetime import timedelta
from functools import partial
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.selectors import preferences_for
from apps.agent.models import ToolCall, ToolGrant
from apps.builder.models import Follower
from apps.chat.attachments.services import attachments_remove
from apps.chat.conversations.selectors import conversation_get
from apps.chat.models import MAX_TITLE, Attachment, Conversation, Folder, Message, Turn, TurnEvent
from apps.core.db.writing import SLICE, in_slices, insert_all, rows_remove, users_of
from apps.core.errors import Forbidden, NotFound
from apps.core.ids import parse_id
from apps.core.jobs.fair import one_by_one
from apps.core.jobs.leases import RELEASED
from apps.core.text import clean_text
from apps.memory.capture.windows import conversation_withdraw, withdrawn_messages
from apps.memory.models import MemoryUse, NoteHandle, Origin
from apps.memory.notes.with_conversation import notes_delete_with, notes_restore_with
from apps.search.documents import Source
from apps.search.services import documents_remove

MAX_MODEL = 100
MAX_INSTRUCTIONS = 4000
UNDO_FOR = timedelta(minutes=2)
"""How long a conversation that was deleted on the page can be brought back."""


@transaction.atomic
def conversation_create(
    *,
    user_id: UUID,
    title: object = "",
    use_memory: bool | None = None,
    folder: Folder | None = None,
) -> Conversation:
    """An empty conversation; `use_memory=None` takes the user's preference. InvalidInput, TooLarge for the title.

    Forbidden (`account_closed`) for a user who is kept out or being deleted: a socket of theirs may still be open.
    """
    if not User.objects.filter(id=user_id, is_active=True).exists():
        raise Forbidden("This account is closed.", code="account_closed")
    named = clean_text(title, field="title", max_chars=MAX_TITLE, allow_empty=True)
    if use_memory is None:
        use_memory = preferences_for(user_id).use_memory
    made = Conversation(
        user_id=user_id,
        title=" ".join(named.split()),
        title_by_user=bool(named),
        use_memory=use_memory,
        folder=folder,
    )
    insert_all([made])
    return made


@transaction.atomic
def conversation_rename(*, user_id: UUID, conversation_id: object, title: object) -> Conversation:
    """Gives the conversation a title of the user's own, which Izzy then leaves alone."""
    return conversation_change(user_id=user_id, conversation_id=conversation_id, title=title)


@transaction.atomic
def conversation_change(
    *,
    user_id: UUID,
    conversation_id: object,
    title: object = None,
    pinned: bool | None = None,
    archived: bool | None = None,
    folder: Folder | None = None,
    unfile: bool = False,
    model: object = None,
    instructions: object = None,
) -> Conversation:
    """Changes what is given, all or none, and leaves the time of the last activity alone. A title is the user's own from then
    on; `unfile` takes it out of its folder; an empty `model` or `instructions` leaves it to the user's own. They hold from the next
    message on. NotFound, InvalidInput and TooLarge for the texts."""
    conversation = conversation_get(user_id, conversation_id, lock=True)
    changes: dict[str, object] = {}
    if title is not None:
        named = " ".join(clean_text(title, field="title", max_chars=MAX_TITLE).split())
        changes |= {"title": named, "title_by_user": True}
    changes |= {"pinned": pinned} if pinned is not None else {}
    changes |= {"archived": archived} if archived is not None else {}
    for name, value in (("model", model), ("instructions", instructions)):
        if value is not None:
            changes[name] = clean_own(name, value)
    changes |= {"folder": folder} if folder is not None or unfile else {}
    for name, value in changes.items():
        setattr(conversation, name, value)
    conversation.save(update_fields=list(changes))
    return conversation


def clean_own(name: str, value: object) -> str:
    """The cleaned value of a field of a conversation's own, `model` or `instructions`. InvalidInput, TooLarge."""
    most = {"model": MAX_MODEL, "instructions": MAX_INSTRUCTIONS}[name]
    return clean_text(value, field=name, max_chars=most, allow_empty=True).strip()


def conversation_delete(
    *, user_id: UUID, conversation_id: object, memories: bool = False, actor: Origin = Origin.USER
) -> None:
    """Deletes the conversation with its messages, turns, events, tool calls, passages and what waits to be read of it; with
    `memories` also the notes that came from it, which `actor` deletes and which can be restored as any.

    A turn that runs in it ends at its next write. What a crash leaves of it nobody sees, and a sweep removes.
    """
    conversation = conversation_get(user_id, conversation_id)
    with transaction.atomic():
        _hide(user_id, conversation.id, session="")
        if memories:
            notes_delete_with(user_id=user_id, conversation_id=conversation.id, actor=actor)
    in_slices(partial(_slice, user_id, conversation.id))


def conversation_hide(*, user_id: UUID, conversation_id: object, memories: bool = False) -> int:
    """Deletes as `conversation_delete` does, but that its rows go only after UNDO_FOR: until then `conversation_restore` has
    it back, with the notes that were deleted with it. Nobody finds it meanwhile, nor its words by a search. Returns how many
    notes went with it."""
    return conversations_hide(user_id=user_id, conversation_ids=[conversation_id], memories=memories)


def conversations_hide(
    *, user_id: UUID, conversation_ids: Collection[object], memories: bool = False
) -> int:
    """`conversation_hide` for several: all of them, or none where one is not there (NotFound)."""
    until, gone = timezone.now() + UNDO_FOR, 0
    with transaction.atomic():
        keys = sorted({conversation_get(user_id, key, lock=True).id for key in conversation_ids})
        for key in keys:
            _hide(user_id, key, deleted_at=until)
            if memories:
                gone += notes_delete_with(user_id=user_id, conversation_id=key)
    rows = Message.objects.unscoped().filter(conversation_id__in=keys, indexed=True).exclude(text="")
    in_slices(partial(_unindex, user_id, rows))
    return gone


@transaction.atomic
def conversation_restore(*, user_id: UUID, conversation_id: object) -> Conversation:
    """A hidden conversation as it was, with the notes that were deleted with it; a sweep makes its words searchable again and hands over what waited to be read.
    NotFound where it was not hidden, is gone by now, or is somebody else's."""
    now = timezone.now()
    hidden = Conversation.objects.unscoped().filter(user_id=user_id, deleted_at__gt=now)
    conversation = hidden.select_for_update().filter(id=parse_id(conversation_id)).first()
    if conversation is None or conversation.deleted_at is None:
        raise NotFound("This conversation can no longer be brought back.")
    since, conversation.deleted_at = conversation.deleted_at - UNDO_FOR, None
    conversation.save(update_fields=["deleted_at"])
    messages = Message.objects.unscoped().filter(conversation_id=conversation.id)
    messages.exclude(text="").update(indexed=False)
    unread = withdrawn_messages(user_id=user_id, conversation_id=conversation.id, since=since)
    messages.filter(id__in=unread).update(captured=False)
    notes_restore_with(user_id=user_id, conversation_id=conversation.id, since=since)
    return conversation


@transaction.atomic
def _unindex(user_id: UUID, rows: QuerySet[Message]) -> bool:
    """Takes some of the messages out of search; whether there may be more."""
    some = list(rows.order_by("conversation_id", "position").values_list("id", flat=True)[:SLICE])
    documents_remove(user_id=user_id, source=Source.CONVERSATION, source_ids=some)
    Message.objects.unscoped().filter(id__in=some).update(indexed=False)
    return len(some) == SLICE


@transaction.atomic
def _hide(user_id: UUID, conversation_id: UUID, **values: object) -> None:
    """From here on nobody finds the conversation, runs it or adds to it."""
    Conversation.objects.owned_by(user_id).filter(id=conversation_id).update(**_hidden() | values)
    conversation_withdraw(user_id=user_id, conversation_id=conversation_id)


def _hidden() -> dict[str, object]:
    return {"deleted_at": timezone.now(), **RELEASED}


@transaction.atomic
def _slice(user_id: UUID, conversation_id: UUID) -> bool:
    """Removes some of a hidden conversation; whether there may be more."""
    messages = Message.objects.unscoped().filter(conversation_id=conversation_id)
    said = list(messages.order_by("position").values_list("id", flat=True)[:SLICE])
    documents_remove(user_id=user_id, source=Source.CONVERSATION, source_ids=said)
    messages.filter(id__in=said).delete()
    files = Attachment.objects.owned_by(user_id).filter(conversation_id=conversation_id)
    gone = len(said) + attachments_remove(user_id, files, room=SLICE - len(said))
    return rows_remove(
        messages,
        files,
        TurnEvent.objects.filter(conversation_id=conversation_id),
        ToolCall.objects.unscoped().filter(conversation_id=conversation_id),
        ToolGrant.objects.unscoped().filter(conversation_id=conversation_id),
        Turn.objects.unscoped().filter(conversation_id=conversation_id),
        NoteHandle.objects.for_user(user_id).filter(conversation_id=conversation_id),
        Follower.objects.unscoped().filter(conversation_id=conversation_id),
        MemoryUse.objects.owned_by(user_id).filter(conversation_id=conversation_id),
        Conversation.objects.unscoped().filter(id=conversation_id),
        room=SLICE - gone,
    )


def conversation_clear(user_id: UUID, conversation_id: UUID) -> None:
    """Removes what was still written for a conversation when that was gone; nothing where it is there."""
    if not Conversation.objects.unscoped().filter(id=conversation_id).exists():
        conversation_withdraw(user_id=user_id, conversation_id=conversation_id)
        in_slices(partial(_slice, user_id, conversation_id))


def user_conversations_thin(user_id: UUID) -> bool:
    """Before an account goes: hides its conversations and removes some of what they hold; whether there may be more.

    Passages go with the account's index, files and all that is few with the account itself.
    """
    Conversation.objects.for_user(user_id).update(**_hidden(), session="")
    return rows_remove(
        Message.objects.unscoped().filter(user_id=user_id),
        TurnEvent.objects.filter(conversation__user_id=user_id),
        Turn.objects.unscoped().filter(user_id=user_id),
        Conversation.objects.unscoped().filter(user_id=user_id),
    )


def conversations_delete_pending() -> None:
    """Sweep: removes what was hidden and is not to be brought back any more, and goes on where a crash left a deletion."""
    hidden = Conversation.objects.unscoped().filter(deleted_at__lte=timezone.now()).order_by()
    one_by_one(users_of(hidden), _delete_own)


def _delete_own(whose: tuple[UUID, QuerySet[Conversation]]) -> None:
    user_id, hidden = whose
    for conversation_id in list(hidden.values_list("id", flat=True)):
        in_slices(partial(_slice, user_id, conversation_id))
