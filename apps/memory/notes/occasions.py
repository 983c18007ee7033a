"""A note's occasions when it changes: taken as they are given, made anew, or left as the user typed them."""

from collections.abc import Mapping
from typing import Any

from apps.accounts.selectors import preferences_for
from apps.memory.models import Memory, OccasionsBy, Trust
from apps.memory.occasions.phrases import MAX_OCCASIONS

from .creation import occasions_made
from .revisions import Change

NAMES = ("occasions", "occasions_by")


def occasions_asked(note: Memory, values: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """The cleaned `values` of a change, with whose the occasions in them are; None has them made anew."""
    rest = {name: value for name, value in values.items() if name != "occasions"}
    given = values.get("occasions", note.occasions)
    if given is None:
        made = _made(note, rest)
        return rest | {name: made[name] for name in NAMES}
    if given == note.occasions:
        return rest
    if change.by_hand:
        return rest | {"occasions": given, "occasions_by": OccasionsBy.USER}
    if Trust.UNTRUSTED in {change.trust, note.trust} or note.occasions_by == OccasionsBy.USER:
        return rest
    return rest | {"occasions": given, "occasions_by": OccasionsBy.MODEL}


def occasions_after(
    note: Memory, values: Mapping[str, Any], changed: Mapping[str, Any]
) -> dict[str, Any]:
    """The occasions of a note with these `values`, of which `changed` differ from what it has: a new text has them
    made anew, unless others come with it or the user typed them."""
    if "occasions" in values:
        stay = changed.keys().isdisjoint(NAMES)
    else:
        stay = "content" not in changed or note.occasions_by == OccasionsBy.USER
    return {} if stay else _made(note, values)


def occasions_typed(*notes: Memory) -> dict[str, Any]:
    """The occasions that the user typed for any of these notes, for the one that stands for all; empty where they typed none."""
    typed = [note.occasions for note in notes if note.occasions_by == OccasionsBy.USER]
    if not typed:
        return {}
    unique: dict[str, str] = {}
    for phrase in (phrase for phrases in typed for phrase in phrases):
        unique.setdefault(phrase.casefold(), phrase)
    return {
        "occasions": list(unique.values())[:MAX_OCCASIONS],
        "occasions_by": OccasionsBy.USER,
    }


def _made(note: Memory, values: Mapping[str, Any]) -> dict[str, Any]:
    """The occasions of a note with these values, in which it is said whose those are that are given."""
    about = {"content": note.content, "tags": note.tags, "kind": note.kind, **values}
    language = preferences_for(note.user_id).language
    return occasions_made(about, typed=False, trust=Trust.USER, language=language)
