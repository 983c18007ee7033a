"""Followers of a build: the turns that asked for it."""

from dataclasses import dataclass
from uuid import UUID

from apps.builder.models import Build, Follower
from apps.builder.notify import build_notify
from apps.core.registries import words


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a build was asked for: ids of the chat, and the user's words there."""

    conversation_id: UUID | None = None
    turn_id: UUID | None = None
    request: str = ""


def origin_of(user_id: UUID, conversation_id: UUID | None, turn_id: UUID | None) -> Origin:
    """That turn, with the user's words which it answers."""
    said = words["turn"](user_id, turn_id) if turn_id is not None and "turn" in words else ""
    return Origin(conversation_id=conversation_id, turn_id=turn_id, request=said)


def build_follow(*, build: Build, origin: Origin) -> None:
    """Has the conversation told of the build from its first message on; nothing where it was not asked for in one. Call it
    inside a transaction that holds the build's row: what ends the build tells those who follow it by then."""
    if origin.conversation_id is None or origin.turn_id is None:
        return
    values = {
        "user_id": build.user_id,
        "conversation_id": origin.conversation_id,
        "has_news": build.messages_count > 0,
    }
    Follower.objects.unscoped().get_or_create(build=build, turn_id=origin.turn_id, defaults=values)
    build_notify(build_id=build.pk, conversation_id=origin.conversation_id)


def followers_move(*, before: Build, to: Build) -> None:
    """Has one attempt's followers follow the next. Call it as `build_follow`."""
    for row in Follower.objects.owned_by(before.user_id).filter(build=before).order_by("pk"):
        build_follow(build=to, origin=Origin(conversation_id=row.conversation_id, turn_id=row.turn_id))
