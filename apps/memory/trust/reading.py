"""How far what a turn writes may be trusted, by what the model has read in it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.agent.selectors import conversation_untrusted
from apps.memory.models import Trust

from .grounding import grounded
from .quotes import own_words, quotes_others


def _nothing() -> Sequence[str]:
    return ()


def _no() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What lies before the model in one turn. Synchronous; ask at the moment of writing, since tools add to it.

    `said` gives the user's messages of the conversation, `shown_untrusted` whether an untrusted note was brought up.
    """

    user_id: UUID
    conversation_id: UUID | None = None
    said: Callable[[], Sequence[str]] = _nothing
    shown_untrusted: Callable[[], bool] = _no

    @property
    def is_untrusted(self) -> bool:
        """Whether the model has others' words before it: of a tool, quoted by the user, or brought up."""
        key = self.conversation_id
        if key is not None and conversation_untrusted(user_id=self.user_id, conversation_id=key):
            return True
        return self.shown_untrusted() or any(map(quotes_others, self.said()))

    def own(self) -> list[str]:
        """The user's messages without what they quote of others."""
        return [own_words(text) for text in self.said()]

    def trust_of(self, content: str, *known: str) -> Trust:
        """The trust of a text that the model writes now.

        Where it has read others' words its text counts as theirs, unless everything telling in it stands in the
        user's own words, or in the texts that are `known` to be trusted.
        """
        if not self.is_untrusted:
            return Trust.ASSISTANT
        return Trust.ASSISTANT if grounded(content, [*self.own(), *known]) else Trust.UNTRUSTED
