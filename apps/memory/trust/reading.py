"""How far what a turn writes may be trusted, by what the model has read in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.agent.selectors import conversation_untrusted
from apps.memory.capture.items import looks_sensitive
from apps.memory.fields import STANDING
from apps.memory.models import Trust

from .quotes import own_words, quotes_others
from .sentences import is_own_sentence

LABEL_CHARS = 12
"""One word of at most so many letters is a label: it finds a note, and claims nothing by itself."""


def _nothing() -> Sequence[str]:
    return ()


def _no() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Judged:
    """How far a new note is trusted, its fields as they may be kept, and the labels that were left out."""

    trust: Trust
    fields: dict[str, Any]
    left_out: Sequence[str] = ()


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

    def trust_of(self, texts: Sequence[str]) -> Trust:
        """The trust of texts and names that the model writes now: where it has read others' words they count as theirs,
        unless each is one whole sentence of the user's."""
        return trust_among(self.own(), texts) if self.is_untrusted else Trust.ASSISTANT

    def needs_a_look(self, texts: Sequence[str], *, known: str = "") -> bool:
        """Whether one of the texts is sensitive and the user has not asked for it: in one whole sentence that begins with a
        request to remember, or with none where the note that says `known` is sensitive already."""
        sensitive = [text for text in texts if looks_sensitive(text)]
        asked = not looks_sensitive(known)
        return any(not is_own_sentence(text, self.own(), asked=asked) for text in sensitive)

    def judged(self, content: str, fields: Mapping[str, Any]) -> Judged:
        """What may be kept of a note with these (cleaned) fields that the model writes now; see `judged_among`."""
        if not self.is_untrusted:
            return Judged(Trust.ASSISTANT, dict(fields))
        return judged_among(self.own(), content, fields)


def trust_among(own: Sequence[str], texts: Sequence[str]) -> Trust:
    """`Reading.trust_of` where others' words were read, by the user's own messages."""
    return Trust.ASSISTANT if all(is_own_sentence(text, own) for text in texts) else Trust.UNTRUSTED


def judged_among(own: Sequence[str], content: str, fields: Mapping[str, Any]) -> Judged:
    """What may be kept of a note where others' words were read, by the user's own messages.

    Tags and category count like the text; single words that the user did not say as a sentence are left out of a note that
    does not wait. None becomes a standing note.
    """
    tags, category = fields.get("tags", []), fields.get("category", "")
    labels = [*tags, *([category] if category else [])]
    trust = trust_among(own, [content, *(label for label in labels if not _is_label(label))])
    waits = trust == Trust.UNTRUSTED
    kept = {
        label for label in labels if label.casefold() != STANDING and (waits or is_own_sentence(label, own))
    }
    values = {
        **fields,
        **({"tags": [tag for tag in tags if tag in kept]} if tags else {}),
        **({"category": category if category in kept else ""} if category else {}),
    }
    return Judged(trust, values, [label for label in labels if label not in kept])


def _is_label(text: str) -> bool:
    return text.isalpha() and len(text) <= LABEL_CHARS
