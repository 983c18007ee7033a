"""Which notes and files a turn read, wrote and changed."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.agent.models import ToolCall
from apps.chat.decision_log.words import command_of, is_directory, is_known, notes_action, one_line, path_of
from apps.core.ids import note_id
from apps.memory.models import Memory, MemoryFile

ACTIONS = ("surfaced", "read", "linked", "written", "changed", "deleted")
"""Actions on a note or a file, in order of weight: of several in one turn the last of these is named."""

FILE_ACTIONS = {
    "view": "read",
    "create": "written",
    "str_replace": "changed",
    "insert": "changed",
    "rename": "changed",
    "delete": "deleted",
}
_NOTE = re.compile(r"note-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class Touch:
    """A note (its id) or a file (its path) and what was done to it."""

    key: UUID | str
    action: str


def touches_of(call: ToolCall) -> list[Touch]:
    """The notes and files it touched; [] if it failed."""
    if call.is_error or call.state != ToolCall.State.DONE:
        return []
    if call.name == "memory":
        return _file_touches(call)
    action = "read" if is_known(call) else notes_action(call)
    if not action:
        return []
    # Ids stand in the results of searches and of writes; a change may name its note in its input alone.
    named = f"{call.input.get('note_id', '')} {call.result}"
    return [Touch(UUID(value), action) for value in dict.fromkeys(_NOTE.findall(named))]


def _file_touches(call: ToolCall) -> list[Touch]:
    action = FILE_ACTIONS.get(command_of(call.input))
    path = str(call.input.get("new_path") or path_of(call))
    if action is None or (action == "read" and is_directory(path)):
        return []
    return [Touch(path, action)]


def strongest(touches: Iterable[Touch]) -> dict[UUID | str, str]:
    """Each thing once, with the weightiest of what was done to it, in the order in which they came."""
    found: dict[UUID | str, str] = {}
    for touch in touches:
        known = found.get(touch.key)
        if known is None or ACTIONS.index(touch.action) > ACTIONS.index(known):
            found[touch.key] = touch.action
    return found


class Known:
    """The notes and files as they are now, for links and words; one query each."""

    def __init__(self, user_id: UUID, touches: Iterable[Touch]) -> None:
        keys = {touch.key for touch in touches}
        notes = Memory.objects.owned_by(user_id).filter(pk__in=[key for key in keys if isinstance(key, UUID)])
        self._notes: Mapping[UUID, str] = dict(notes.values_list("pk", "content"))
        files = MemoryFile.objects.for_user(user_id).filter(
            path__in=[key for key in keys if isinstance(key, str)]
        )
        self._files: Mapping[str, UUID] = dict(files.values_list("path", "pk"))

    def note(self, key: UUID, action: str) -> dict[str, Any]:
        """`{id, note_id, action, text}`; `text` is "" where the note is not there any more."""
        return {
            "id": str(key),
            "note_id": note_id(key),
            "action": action,
            "text": one_line(self._notes.get(key, "")),
        }

    def text_of(self, target: str) -> str:
        """The target of a step; of one that is a note's id, the note's text, "" where the note is not known."""
        found = _NOTE.fullmatch(target)
        return one_line(self._notes.get(UUID(found[1]), "")) if found else target

    def file(self, path: str, action: str) -> dict[str, Any]:
        """`{path, id, action}`; `id` is None where there is no such file any more."""
        found = self._files.get(path)
        return {"path": path, "id": str(found) if found else None, "action": action}
