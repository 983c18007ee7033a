"""Word that a build has something new: whoever waits for its rows looks at them at once."""

from functools import partial
from uuid import UUID

from django.db import transaction

from apps.core.jobs.bus import Signal, bus

BUILDS = "builds"
"""The topic; an item is `[build, conversation]`, ids as text, the second "" where no conversation is to be told."""


def build_notify(*, build_id: UUID, conversation_id: UUID | None = None) -> None:
    """Tells all processes once the transaction is committed."""
    item = [str(build_id), str(conversation_id or "")]
    transaction.on_commit(partial(bus().publish, BUILDS, item))


def build_signal(build_id: UUID) -> Signal:
    """Set by what is new of this build; close it in the end."""
    return Signal(BUILDS, lambda item: item[0] == str(build_id))
