"""Tool calls in words for the user: title, target and outcome, which errors were made good, which notes and files were touched."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from apps.agent.models import ToolCall
from apps.agent.tools.base import NoteAction, find_tool, tool_title
from apps.agent.tools.results import UNTRUSTED, result_json
from apps.core.ids import note_id
from apps.memory.files.commands import SYNONYMS
from apps.memory.files.texts import ROOT
from apps.memory.models import Memory, MemoryFile

LINE_CHARS = 140
_UNKNOWN_NOTE = re.compile(r"There is no note with the id [^.]{0,200}\.")
FILE_OUTCOMES = {"str_replace": "updated", "insert": "added", "delete": "deleted", "rename": "renamed"}
TARGETS = ("query", "keywords", "content", "question", "url", "name", "note_id", "thought", "text")
NOT_RUN = {
    "declined": "You declined it, so it was not done.",
    "stopped": "You stopped it.",
    "interrupted": "The server stopped meanwhile.",
    "failed": "The turn ended before it was done.",
    "superseded": "You wrote something new instead, so it was not done.",
    "not_allowed": "Your settings do not allow it.",
}
"""How calls end that failed through nobody's mistake, by error code."""
WRITTEN = {
    "create": ("file_text", "content", "text"),
    "str_replace": ("new_str", "new_string"),
    "insert": ("insert_text", "new_str", "new_string"),
}
"""The fields that bring text into a file, by command; the first that is given counts."""
WRITING = ("written", "changed")
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
Touch = tuple[UUID | str, str]
"""A note (its id) or a file (its path) and what was done to it."""
_NOTE = re.compile(r"note-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


def title(call: ToolCall) -> str:
    """The call's name, such as `View`, `Update` or `Search memories`."""
    command = command_of(call.input)
    if call.name == "memory" and command == "view" and is_directory(path_of(call)):
        return "View the memory directory" if path_of(call) == ROOT else "View the directory"
    return tool_title(call.name, command)


def target(call: ToolCall) -> str:
    """The call's target: a file's name, a query, a note's text; "" where the title says it all."""
    if call.name == "memory":
        path = path_of(call)
        if path == ROOT:
            return ""
        new = str(call.input.get("new_path", ""))
        return f"{file_name(path)} → {file_name(new)}" if new else file_name(path)
    tool = find_tool(call.name)
    fields = tool.shows if tool and tool.shows else TARGETS
    values = [call.input.get(name) for name in fields]
    shown = (value for value in values if value and isinstance(value, str | list | int | float))
    given = next((value for value in shown if value is not True), "")
    return one_line(", ".join(map(str, given)) if isinstance(given, list) else str(given))


def outcome(call: ToolCall) -> str:
    """The call's result, in one line."""
    if call.state != ToolCall.State.DONE:
        return "Waits for you." if call.state == ToolCall.State.WAITING else "Not finished."
    if call.is_error:
        # Without the advice to the model.
        said = _UNKNOWN_NOTE.sub("There is no such memory.", call.result.removeprefix("Error: ").strip())
        problem = said.split(". Call ")[0].split(". Use ")[0].split("\n")[0].rstrip(".") + "."
        return NOT_RUN.get(call.error_code) or one_line(problem)
    if call.name == "ask_user":
        return one_line(f"You answered: {call.answer or call.result}")
    return _file_outcome(call) if call.name == "memory" else _found(result_json(call.result)) or "Done."


def _file_outcome(call: ToolCall) -> str:
    command = command_of(call.input)
    if command == "create":
        lines, characters = amount(written_text(call) or "")
        return f"{counted(lines, 'line')}, {counted(characters, 'character')} written"
    if command in FILE_OUTCOMES:
        return FILE_OUTCOMES[command].capitalize() + "."
    shown = call.result.removeprefix(UNTRUSTED).splitlines()
    if is_directory(path_of(call)):
        return counted(max(0, len(shown) - 2), "item") + " found"
    return counted(max(0, len(shown) - 1), "line") + " read"


def _found(result: Any) -> str:
    """How many a search found, or what a result says about itself."""
    if isinstance(result, list):
        return counted(len(result), "result") if result else "Nothing found."
    if not isinstance(result, dict):
        return ""
    if isinstance(result.get("count"), int):
        return counted(result["count"], "result") if result["count"] else "Nothing found."
    return one_line(str(result.get("message", "")))


def command_of(given: Mapping[str, Any]) -> str:
    """The file command of a call's input by its proper name; "" where there is none."""
    name = given.get("command")
    return SYNONYMS.get(name, name) if isinstance(name, str) else ""


def path_of(call: ToolCall) -> str:
    """The path that a file command is about; views without one are of the root."""
    return str(call.input.get("path") or call.input.get("old_path") or ROOT).rstrip("/") or ROOT


def is_directory(path: str) -> bool:
    """Whether it looks like a directory: what Izzy names as a file has an ending."""
    return path == ROOT or not PurePosixPath(path).suffix


def file_name(path: str) -> str:
    """The path without `/memories/`."""
    return path.removeprefix(f"{ROOT}/")


def notes_action(call: ToolCall) -> NoteAction:
    """The call's action on notes."""
    tool = find_tool(call.name)
    return tool.notes if tool else ""


def is_known(call: ToolCall) -> bool:
    """Whether the call was to write what a note says already, so that nothing was written."""
    found = result_json(call.result) if notes_action(call) in WRITING else None
    return isinstance(found, dict) and found.get("status") == "known"


def written_text(call: ToolCall) -> str | None:
    """The text that the call wrote into a file or a note; None for one that writes none or failed."""
    if call.is_error or call.state != ToolCall.State.DONE:
        return None
    if notes_action(call) in WRITING:
        text = None if is_known(call) else call.input.get("content")
    elif call.name == "memory":
        fields = WRITTEN.get(command_of(call.input), ())
        text = next((call.input[name] for name in fields if call.input.get(name) is not None), None)
    else:
        text = None
    return text if isinstance(text, str) else None


def amount(text: str) -> tuple[int, int]:
    """Lines and characters of a text; a line break at its end begins no line."""
    return len(text.splitlines()), len(text)


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1].rstrip()}…"


def is_failure(call: ToolCall) -> bool:
    """Whether the call went wrong, rather than being stopped or declined."""
    return call.state == ToolCall.State.DONE and call.is_error and call.error_code not in NOT_RUN


def recoveries(calls: Sequence[ToolCall]) -> tuple[dict[UUID, UUID], set[UUID]]:
    """For the calls of one turn, in order: the success by failure that it made good, and the ids of all calls that
    belong to a recovery."""
    made_good: dict[UUID, UUID] = {}
    steps: set[UUID] = set()
    for index, call in enumerate(calls):
        later = calls[index + 1 :] if is_failure(call) else []
        for place, other in enumerate(later):
            if not other.is_error and other.state == ToolCall.State.DONE and _aims(call) & _aims(other):
                made_good[call.id] = other.id
                steps |= {each.id for each in later[: place + 1] if not is_failure(each)}
                break
    return made_good, steps


def _aims(call: ToolCall) -> set[tuple[str, str]]:
    """The tool (for files: with the command), and the file or note. To look at a file is no success at changing it."""
    command = command_of(call.input) if call.name == "memory" else ""
    aims = {(call.name, command)}
    if call.name == "memory" and command != "view":
        aims.add(("file", path_of(call)))
    elif call.name != "memory" and (note := call.input.get("note_id")):
        aims.add(("note", str(note)))
    return aims


def touches_of(call: ToolCall) -> list[Touch]:
    """The notes and files it touched; [] if it failed."""
    if call.is_error or call.state != ToolCall.State.DONE:
        return []
    if call.name == "memory":
        made = FILE_ACTIONS.get(command_of(call.input))
        path = str(call.input.get("new_path") or path_of(call))
        return [] if made is None or (made == "read" and is_directory(path)) else [(path, made)]
    action = "read" if is_known(call) else notes_action(call)
    if not action:
        return []
    # Ids stand in the results of searches and of writes; a change may name its note in its input alone.
    named = f"{call.input.get('note_id', '')} {call.result}"
    return [(UUID(value), action) for value in dict.fromkeys(_NOTE.findall(named))]


def strongest(touches: Iterable[Touch]) -> dict[UUID | str, str]:
    """Each thing once, with the weightiest of what was done to it, in the order in which they came."""
    found: dict[UUID | str, str] = {}
    for key, action in touches:
        if key not in found or ACTIONS.index(action) > ACTIONS.index(found[key]):
            found[key] = action
    return found


class Known:
    """The notes and files as they are now, for links and words; one query each."""

    def __init__(self, user_id: UUID, touches: Iterable[Touch]) -> None:
        keys = {key for key, _ in touches}
        notes = Memory.objects.owned_by(user_id).filter(
            pk__in=[key for key in keys if isinstance(key, UUID)]
        )
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
