"""Versions of messages as a newer file has them: which are in force, and which turns stand in one place."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from uuid import UUID

from django.db.models import F

from apps.chat.conversations.handover import messages_leave
from apps.chat.models import Conversation, Message, Turn
from apps.core.db.writing import update_all

Version = tuple[UUID | None, int]
"""The turn that superseded a message, and its branch."""


def versions_place(*, user_id: UUID, conversation_id: UUID, places: Collection[int]) -> None:
    """Notes with the first turn of each of these places that others stand there too."""
    first = Turn.objects.owned_by(user_id).filter(conversation_id=conversation_id, position__in=places)
    first.update(place=F("position"))


def versions_revise(*, user_id: UUID, wanted: Mapping[UUID, Version]) -> None:
    """Has messages come into force and leave it. Call it inside a transaction; a sweep indexes those that came."""
    rows = Message.objects.owned_by(user_id).filter(pk__among=list(wanted)).defer("blocks")
    changed = [row for row in rows if (row.superseded_by_id, row.branch) != wanted[row.pk]]
    left: dict[UUID, list[Message]] = defaultdict(list)
    for message in changed:
        by, branch = wanted[message.pk]
        if by and message.superseded_by_id is None:
            left[message.conversation_id].append(message)
        elif by is None and message.text:
            message.indexed = False
        message.superseded_by_id, message.branch = by, branch
    update_all(
        Message,
        ("superseded_by", "branch", "indexed"),
        [(each.pk, [each.superseded_by_id, each.branch, each.indexed]) for each in changed],
    )
    for key, gone in left.items():
        messages_leave(user_id=user_id, conversation_id=key, message_ids=[each.pk for each in gone])
        summed_up = Conversation.objects.for_user(user_id).filter(
            pk=key, summary_until__gte=min(each.position for each in gone)
        )
        summed_up.update(
            summary="", summary_until=0, summary_untrusted=False, summary_by="", summary_at=None
        )
