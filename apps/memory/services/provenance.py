"""Who writes: where a note comes from, and who changes it why."""

from dataclasses import dataclass
from uuid import UUID

from apps.memory.models import Origin, Trust

MAX_REASON_CHARS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a new note comes from. `trust` says whose words it repeats."""

    origin: Origin = Origin.USER
    trust: Trust = Trust.USER
    conversation_id: UUID | None = None
    message_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Who changes a note, and why in at most 200 characters (shown in its history)."""

    actor: Origin = Origin.USER
    reason: str = ""


FROM_USER = Provenance()
BY_USER = Change(actor=Origin.USER)
BY_ASSISTANT = Change(actor=Origin.ASSISTANT)
BY_API = Change(actor=Origin.API)
