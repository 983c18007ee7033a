"""Hands the messages of builds to the log of their conversation, each once."""

from uuid import UUID

from apps.builder.models import Build, BuilderMessage
from apps.builder.selectors import builds_untold


def messages_untold(*, conversation_id: UUID) -> list[tuple[Build, list[BuilderMessage]]]:
    """The messages that the conversation's log lacks, by build, which count as told then. Call it inside the transaction
    that writes the log."""
    found = []
    for build in builds_untold(conversation_id):
        rows = BuilderMessage.objects.for_user(build.user_id).filter(build=build, number__gt=build.told)
        messages = list(rows.order_by("number"))
        if messages:
            Build.objects.for_user(build.user_id).filter(pk=build.pk).update(told=messages[-1].number)
            found.append((build, messages))
    return found
