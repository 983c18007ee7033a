"""The queue between builder and user: one row for each message, numbered within its build."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import F

from apps.agent.results import storable
from apps.builder.models import Build, BuilderMessage, Direction, Follower, MessageType
from apps.builder.notify import build_notify
from apps.builder.selectors import conversations_of


def message_add(
    *, build: Build, type: MessageType, payload: dict[str, Any], direction: Direction = Direction.TO_USER
) -> BuilderMessage:
    """Adds a message. Call it inside a transaction: numbers become visible in their order.

    Its own number is taken by an update of the build's row, which the transaction then holds. The conversations that
    follow the build have news, and whoever waits for it is notified when it is committed.
    """
    row = Build.objects.unscoped().filter(pk=build.pk)
    row.update(messages_count=F("messages_count") + 1)
    number = row.values_list("messages_count", flat=True).get()
    build.messages_count = number
    Follower.objects.owned_by(build.user_id).filter(build_id=build.pk).update(has_news=True)
    told: Sequence[UUID | None] = conversations_of(build) or [None]
    for conversation_id in told:
        build_notify(build_id=build.pk, conversation_id=conversation_id)
    return BuilderMessage.objects.create(
        user_id=build.user_id,
        build=build,
        number=number,
        type=type,
        direction=direction,
        payload=storable(payload),
    )


def messages_take(*, build_ids: list[UUID]) -> list[BuilderMessage]:
    """The unread messages to these builders, oldest first; they are read then. Call it inside a transaction."""
    rows = BuilderMessage.objects.unscoped().filter(
        build_id__in=build_ids, direction=Direction.TO_BUILDER, read=False
    )
    found = list(rows.order_by("number"))
    BuilderMessage.objects.unscoped().filter(pk__in=[row.pk for row in found]).update(read=True)
    return found
