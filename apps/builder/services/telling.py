"""Hands the messages of builds to the log of each conversation that follows them, each once."""

from uuid import UUID

from django.db import transaction

from apps.builder.models import BuilderMessage, Follower


@transaction.atomic
def messages_untold(*, conversation_id: UUID) -> list[tuple[Follower, list[BuilderMessage]]]:
    """The messages that the conversation's log lacks, by the turn that follows their build; they count as told then. Call
    it inside the transaction that writes the log.

    The followers' rows are held before the messages are read, so that what comes meanwhile is news again. One that a
    build is writing to just now is left for the next look: that build may wait for the conversation which the caller holds.
    """
    held = Follower.objects.unscoped().select_for_update(skip_locked=True)
    rows = held.filter(conversation_id=conversation_id)
    return [(follower, _told(follower)) for follower in rows.filter(has_news=True).order_by("pk")]


def _told(follower: Follower) -> list[BuilderMessage]:
    rows = BuilderMessage.objects.for_user(follower.user_id).filter(build_id=follower.build_id)
    messages = list(rows.filter(number__gt=follower.told).order_by("number"))
    if messages:
        follower.told = messages[-1].number
    follower.has_news = False
    follower.save(update_fields=["told", "has_news"])
    return messages
