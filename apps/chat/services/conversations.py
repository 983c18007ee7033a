"""Writes of conversations themselves."""

from uuid import UUID

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.selectors import preferences_for
from apps.chat.models import Conversation
from apps.chat.selectors.conversations import conversation_get
from apps.core.errors import Forbidden
from apps.core.text import clean_text

MAX_TITLE = 200


@transaction.atomic
def conversation_create(*, user_id: UUID, title: object = "", use_memory: bool | None = None) -> Conversation:
    """An empty conversation; `use_memory=None` takes the user's preference. InvalidInput, TooLarge for the title.

    Forbidden (`account_closed`) for a user who is kept out or being deleted: a socket of theirs may still be open.
    """
    if not User.objects.filter(id=user_id, is_active=True).exists():
        raise Forbidden("This account is closed.", code="account_closed")
    named = clean_text(title, field="title", max_chars=MAX_TITLE, allow_empty=True)
    if use_memory is None:
        use_memory = preferences_for(user_id).use_memory
    return Conversation.objects.create(
        user_id=user_id, title=" ".join(named.split()), title_by_user=bool(named), use_memory=use_memory
    )


@transaction.atomic
def conversation_rename(*, user_id: UUID, conversation_id: object, title: object) -> Conversation:
    """Gives the conversation a title of the user's own, which Izzy then leaves alone."""
    conversation = conversation_get(user_id, conversation_id)
    conversation.title = " ".join(clean_text(title, field="title", max_chars=MAX_TITLE).split())
    conversation.title_by_user = True
    conversation.save(update_fields=["title", "title_by_user"])
    return conversation
