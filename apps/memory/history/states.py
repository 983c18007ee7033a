"""State of a note in a revision, beside its content."""

from typing import Any

from apps.core.http.shapes import clean_time
from apps.memory.models import Memory, MemoryRevision, Status

_PLAIN = ("tier", "kind", "importance", "tags", "category", "status", "decay_rate", "trust")
_TIMES = ("valid_from", "valid_to")


def note_state(note: Memory, cycle: int) -> dict[str, Any]:
    """The JSON-ready state of a note, its priority as it is at the user's decay cycle `cycle`."""
    state: dict[str, Any] = {name: getattr(note, name) for name in _PLAIN}
    for name in _TIMES:
        moment = getattr(note, name)
        state[name] = moment.isoformat() if moment else None
    state["superseded_by"] = str(note.superseded_by_id) if note.superseded_by_id else None
    state["priority"] = max(0.0, note.priority - note.decay_rate * (cycle - note.priority_cycle))
    return state


def state_values(revision: MemoryRevision) -> dict[str, Any]:
    """The values that give a note the state of a revision again.

    That it was deleted or superseded then counts as active: going back to a text is meant to bring it back.
    """
    values: dict[str, Any] = {"content": revision.content, "priority": revision.state["priority"]}
    values.update({name: revision.state[name] for name in _PLAIN})
    for name in _TIMES:
        moment = revision.state[name]
        values[name] = clean_time(moment, field=name) if moment else None
    if values["status"] == Status.SUPERSEDED or revision.state["superseded_by"]:
        values["valid_to"] = None
    if values["status"] in {Status.DELETED, Status.SUPERSEDED}:
        values["status"] = str(Status.ACTIVE)
    return {**values, "superseded_by_id": None}
