"""Whose words a note or file repeats that the model writes: the user's own are one whole sentence of theirs, where others' words
were read in the conversation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.agent.taint import ConversationTaint
from apps.memory.capture.items import looks_sensitive
from apps.memory.fields import STANDING
from apps.memory.models import Trust

from .sentences import is_own_sentence

LABEL_CHARS = 12
"""One word of at most so many letters is a label: it finds a note, and claims nothing by itself."""


@dataclass(frozen=True, slots=True)
class Judged:
    """How far a new note is trusted, its fields as they may be kept, and the labels that were left out."""

    trust: Trust
    fields: dict[str, Any]
    left_out: Sequence[str] = ()


def texts_judged(taint: ConversationTaint, texts: Sequence[str]) -> Trust:
    """How far texts and names that the model writes now are trusted."""
    if not taint.is_tainted:
        return Trust.ASSISTANT
    own = taint.own()
    return Trust.ASSISTANT if all(is_own_sentence(text, own) for text in texts) else Trust.UNTRUSTED


def note_judged(taint: ConversationTaint, content: str, fields: Mapping[str, Any]) -> Judged:
    """Judges what may be kept of a note the model writes with these (cleaned) fields."""
    if not taint.is_tainted:
        return Judged(Trust.ASSISTANT, dict(fields))
    return judged_among(taint.own(), content, fields)


def judged_among(own: Sequence[str], content: str, fields: Mapping[str, Any]) -> Judged:
    """Judges what may be kept where others' words were read, by the user's own messages.

    Tags and category count like the text; single words that the user did not say as a sentence are left out of a note that
    does not wait. None becomes a standing note.
    """
    category = fields.get("category", "")
    labels = [*fields.get("tags", []), *([category] if category else [])]
    claims = [label for label in labels if not (label.isalpha() and len(label) <= LABEL_CHARS)]
    waits = not all(is_own_sentence(text, own) for text in [content, *claims])
    kept = [
        label for label in labels if label.casefold() != STANDING and (waits or is_own_sentence(label, own))
    ]
    values = dict(fields)
    if "tags" in fields:
        values["tags"] = [tag for tag in fields["tags"] if tag in kept]
    if category not in kept:
        values.pop("category", None)
    left_out = [label for label in labels if label not in kept]
    return Judged(Trust.UNTRUSTED if waits else Trust.ASSISTANT, values, left_out)


def needs_a_look(taint: ConversationTaint, texts: Sequence[str], *, known: str = "") -> bool:
    """Whether one of the texts is sensitive and the user has not asked for it: in one whole sentence that begins with a
    request to remember, or with none where the note that says `known` is sensitive already."""
    sensitive = [text for text in texts if looks_sensitive(text)]
    asked = not looks_sensitive(known)
    return any(not is_own_sentence(text, taint.own(), asked=asked) for text in sensitive)
