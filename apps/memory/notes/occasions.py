"""Whose occasions a note has: given with it, made by rule, or typed by the user; and when they are made anew."""

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone

from apps.accounts.selectors import preferences_for
from apps.memory.models import Memory, OccasionsBy, OccasionsWait, Trust
from apps.memory.occasions.phrases import MAX_OCCASIONS
from apps.memory.occasions.table import occasions_by_rule
from apps.search.text.analysis import detect_language

from .revisions import Change


def occasions_new(values: Mapping[str, Any], change: Change, language: str) -> dict[str, Any]:
    """The occasions of a new note with these cleaned values: those given with it, else those of the table of kinds.

    What comes with a text that repeats others' words counts for nothing, or it could have itself brought up always.
    """
    by = values.get("occasions_by") or (OccasionsBy.USER if change.by_hand else OccasionsBy.MODEL)
    if values.get("occasions") and (by == OccasionsBy.USER or change.words != Trust.UNTRUSTED):
        given = {"occasions": values["occasions"], "occasions_by": by}
    else:
        given = _by_rule(
            values["content"], values.get("tags", ()), str(values.get("kind", "")), language
        )
    return given | _queued(**given)


def occasions_asked(note: Memory, values: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """The cleaned `values` of a change, with whose the occasions in them are; None has them made anew."""
    rest = {name: value for name, value in values.items() if name != "occasions"}
    given = values.get("occasions", note.occasions)
    if given is None:
        now = {"content": note.content, "tags": note.tags, "kind": note.kind} | rest
        language = preferences_for(note.user_id).language
        return rest | _by_rule(now["content"], now["tags"], now["kind"], language)
    if given == note.occasions:
        return rest
    if change.by_hand:
        return rest | {"occasions": given, "occasions_by": OccasionsBy.USER}
    if Trust.UNTRUSTED in {change.words, note.trust} or note.occasions_by == OccasionsBy.USER:
        return rest
    return rest | {"occasions": given, "occasions_by": OccasionsBy.MODEL}


def occasions_after(
    note: Memory, values: Mapping[str, Any], changed: Mapping[str, Any]
) -> dict[str, Any]:
    """What becomes of a note's occasions with these `values`, of which `changed` differ from what it has: a new text has them
    made anew, unless others come with it or the user typed them."""
    if "occasions" in values:
        differ = not changed.keys().isdisjoint({"occasions", "occasions_by"})
        return _queued(values["occasions"], values["occasions_by"]) if differ else {}
    if "content" not in changed or note.occasions_by == OccasionsBy.USER:
        return {}
    tags, kind = values.get("tags", note.tags), values.get("kind", note.kind)
    made = _by_rule(changed["content"], tags, kind, preferences_for(note.user_id).language)
    return made | _queued(**made)


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


def _by_rule(text: str, tags: Sequence[str], kind: str, language: str) -> dict[str, Any]:
    phrases = occasions_by_rule(text, tags, kind, language or detect_language(text))
    by = OccasionsBy.RULES if phrases else OccasionsBy.NONE
    return {"occasions": phrases, "occasions_by": by}


def _queued(occasions: Sequence[str], occasions_by: str) -> dict[str, Any]:
    """What the worker has to do for new occasions: nothing for the user's, compare others, ask a model where there are none."""
    if occasions_by == OccasionsBy.USER:
        wait = OccasionsWait.NONE
    else:
        wait = OccasionsWait.CHECK if occasions else OccasionsWait.MODEL
    return {"occasions_wait": wait, "occasions_due": timezone.now(), "occasions_tries": 0}
