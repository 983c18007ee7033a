"""Origins of notes, and the actor and reason of a change."""

from dataclasses import dataclass
from uuid import UUID

from apps.memory.models import Origin, Trust
from apps.memory.trust import trust_of

MAX_REASON_CHARS = 200
BY_HAND = frozenset({Origin.USER, Origin.API})
"""The user's own origins: the page, and programs with the user's own token. Nothing of theirs waits for review."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """Where a new note comes from. `trust` says whose words it repeats."""

    origin: Origin = Origin.USER
    trust: Trust = Trust.USER
    conversation_id: UUID | None = None
    message_id: UUID | None = None

    def change(self, *, reason: str = "", sensitive: bool = False) -> "Change":
        """A change of another note by the writer of this one."""
        return Change(
            actor=self.origin,
            reason=reason,
            trust=self.trust,
            sensitive=sensitive,
            conversation_id=self.conversation_id,
            message_id=self.message_id,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change's actor and reason, at most 200 characters (shown in the history).

    `trust` is that of the words it brings, by default what the actor's words are worth; `sensitive` says that they
    are of a kind the user may want to see first. Conversation and message are where a proposal comes from.
    """

    actor: Origin = Origin.USER
    reason: str = ""
    trust: Trust | None = None
    sensitive: bool = False
    conversation_id: UUID | None = None
    message_id: UUID | None = None

    @property
    def words(self) -> Trust:
        """How far the words that this change brings are trusted."""
        return self.trust or trust_of(self.actor)

    @property
    def by_hand(self) -> bool:
        """Whether the user made it, on a page or with a program of theirs."""
        return self.actor in BY_HAND and self.words == Trust.USER

    @property
    def provenance(self) -> Provenance:
        """Where a note comes from that this change makes."""
        return Provenance(
            origin=self.actor,
            trust=self.words,
            conversation_id=self.conversation_id,
            message_id=self.message_id,
        )


FROM_USER = Provenance()
BY_USER = Change(actor=Origin.USER)
BY_ASSISTANT = Change(actor=Origin.ASSISTANT)
