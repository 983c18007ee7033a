"""The queue between builder and user: one row for each message, numbered within its build, and those who follow it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from apps.builder.builds.selectors import conversations_of
from apps.builder.models import Build, BuilderMessage, Direction, Follower, MessageType
from apps.core.jobs.bus import bus
from apps.core.registries import words
from apps.core.text import storable

BUILDS = "builds"
"""The topic; an item is `[build, conversation]`, ids as text, the second "" where no conversation follows it."""


def build_notify(*, build_id: UUID, conversation_id: UUID | None = None) -> None:
    """Notifies all processes once the transaction is committed."""
    item = [str(build_id), str(conversation_id or "")]
    transaction.on_commit(partial(bus().publish, BUILDS, item))


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrigin:
    """Where a build was asked for: ids of the chat, and the user's words there."""

    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    request: str = ""


def origin_of(user_id: UUID, conversation_id: UUID | None, turn_id: UUID | None) -> BuildOrigin:
    """That turn, with the user's words which it answers."""
    request = words["turn"](user_id, turn_id) if turn_id is not None and "turn" in words else ""
    return BuildOrigin(conversation_id=conversation_id, turn_id=turn_id, request=request)


def build_follow(*, build: Build, origin: BuildOrigin) -> None:
    """Has the conversation follow the build from its first message on; nothing where it was not asked for in one. Call it
    inside a transaction that holds the build's row: what ends the build reaches those who follow it by then."""
    if origin.conversation_id is None or origin.turn_id is None:
        return
    values = {
        "user_id": build.user_id,
        "conversation_id": origin.conversation_id,
        "has_news": build.messages_count > 0,
    }
    Follower.objects.unscoped().get_or_create(build=build, turn_id=origin.turn_id, defaults=values)
    build_notify(build_id=build.pk, conversation_id=origin.conversation_id)


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
    conversations: Sequence[UUID | None] = conversations_of(build) or [None]
    for conversation_id in conversations:
        build_notify(build_id=build.pk, conversation_id=conversation_id)
    return BuilderMessage.objects.create(
        user_id=build.user_id,
        build=build,
        number=number,
        type=type,
        direction=direction,
        payload=storable(payload),
    )


@transaction.atomic
def messages_to_log(*, conversation_id: UUID) -> list[tuple[Follower, list[BuilderMessage]]]:
    """The messages that the conversation's log lacks, by the turn that follows their build; they count as logged then. Call
    it inside the transaction that writes the log.

    The followers' rows are held before the messages are read, so that what comes meanwhile is news again. One that a
    build is writing to just now is left for the next look: that build may wait for the conversation which the caller holds.
    """
    held = Follower.objects.unscoped().select_for_update(skip_locked=True)
    found = []
    for follower in held.filter(conversation_id=conversation_id, has_news=True).order_by("pk"):
        rows = BuilderMessage.objects.for_user(follower.user_id).filter(build_id=follower.build_id)
        messages = list(rows.filter(number__gt=follower.emitted).order_by("number"))
        if messages:
            follower.emitted = messages[-1].number
        follower.has_news = False
        follower.save(update_fields=["emitted", "has_news"])
        found.append((follower, messages))
    return found
