"""Whether others' words lie before the model in a conversation."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.agent.selectors import conversation_untrusted
from apps.core.quotes import own_words, quotes_others


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTaint:
    """The words that the model reads in a conversation. Synchronous; ask when deciding, since tools add to it."""

    user_id: UUID
    conversation_id: UUID | None = None
    messages: Callable[[], Sequence[str]] = tuple  # what the user said there
    shown_untrusted: Callable[[], bool] = bool  # whether an untrusted note was brought up

    @property
    def is_tainted(self) -> bool:
        """Whether others' words are among it: of a tool, quoted by the user, or in a note that was brought up."""
        key = self.conversation_id
        if key is not None and conversation_untrusted(user_id=self.user_id, conversation_id=key):
            return True
        return self.shown_untrusted() or any(map(quotes_others, self.messages()))

    def own(self) -> list[str]:
        """The user's messages without what they quote of others."""
        return [own_words(text) for text in self.messages()]
