"""The six commands of the memory tool: from the fields of a call to the text that answers it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.core.errors import InvalidInput, NotFound
from apps.memory.notes.revisions import Change

from .selectors import entries, file_at, is_directory
from .services import file_delete, file_insert, file_rename, file_replace, file_write
from .texts import ROOT, clean_path, listing, numbered, snippet

VIEW = "view"
CREATE = "create"
REPLACE = "str_replace"
DELETE = "delete"
RENAME = "rename"
WRITTEN_FIELDS = ("file_text", "content", "text", "new_str", "new_string", "insert_text", "new_path")
"""The fields that bring words into the tree; a new path does too."""

SYNONYMS = {
    "read": "view",
    "list": "view",
    "write": "create",
    "replace": "str_replace",
    "edit": "str_replace",
    "remove": "delete",
    "move": "rename",
}
"""Names by which a command is known too."""

MAX_LINE_NUMBER = 2**31
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Call:
    """A command's fields and who gives it."""

    user_id: UUID
    change: Change
    fields: Mapping[str, Any]

    def get(self, *names: str, default: Any = _MISSING) -> Any:
        """The first of these fields that is given and not null, else the default; a field without one is required."""
        for name in names:
            if self.fields.get(name) is not None:
                return self.fields[name]
        if default is not _MISSING:
            return default
        raise InvalidInput(f"{names[0]} is missing.", code="missing_field", field=names[0])


def command_name(fields: Mapping[str, Any]) -> str:
    """Which of the six commands is asked for. Raises InvalidInput for any other."""
    given = fields.get("command")
    if not isinstance(given, str):
        raise InvalidInput(f"command must be one of {', '.join(COMMANDS)}.", field="command")
    name = SYNONYMS.get(given, given)
    if name not in COMMANDS:
        message = f"There is no command {given[:50]!r}. Use one of {', '.join(COMMANDS)}."
        raise InvalidInput(message, code="unknown_command", field="command")
    return name


def command_run(*, user_id: UUID, fields: Mapping[str, Any], change: Change) -> str:
    """Run one command for a user; synchronous. Fields are those of `memory_20250818`, or their older names.

    Raises `apps.core.errors` with a message that says what to do.
    """
    return COMMANDS[command_name(fields)](Call(user_id, change, fields))


def _view(call: Call) -> str:
    path = clean_path(call.get("path", default=ROOT))
    view_range = _view_range(call.get("view_range", default=None))
    file = file_at(call.user_id, path)
    if file is not None:
        return numbered(path, file.content, view_range)
    if not is_directory(call.user_id, path):
        raise NotFound(f"The path {path} does not exist. Please provide a valid path.")
    return listing(path, entries(call.user_id, path))


def _create(call: Call) -> str:
    text = call.get("file_text", "content", "text")
    file = file_write(user_id=call.user_id, path=call.get("path"), text=text, change=call.change)
    return f"File created successfully at: {file.path}"


def _str_replace(call: Call) -> str:
    done = file_replace(
        user_id=call.user_id,
        path=call.get("path"),
        old=call.get("old_str", "old_string"),
        new=call.get("new_str", "new_string", default=""),
        change=call.change,
    )
    shown = snippet(done.file.content, done.line, done.count)
    return f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{shown}"


def _insert(call: Call) -> str:
    file = file_insert(
        user_id=call.user_id,
        path=call.get("path"),
        line=_line_number(call.get("insert_line"), field="insert_line"),
        text=call.get("insert_text", "new_str", "new_string"),
        change=call.change,
    )
    return f"The file {file.path} has been edited."


def _delete(call: Call) -> str:
    path = clean_path(call.get("path"))
    file_delete(user_id=call.user_id, path=path, change=call.change)
    return f"Successfully deleted {path}"


def _rename(call: Call) -> str:
    old = clean_path(call.get("old_path", "path"), field="old_path")
    new = clean_path(call.get("new_path"), field="new_path")
    file_rename(user_id=call.user_id, old_path=old, new_path=new, change=call.change)
    return f"Successfully renamed {old} to {new}"


COMMANDS: dict[str, Callable[[Call], str]] = {
    VIEW: _view,
    CREATE: _create,
    REPLACE: _str_replace,
    "insert": _insert,
    DELETE: _delete,
    RENAME: _rename,
}


def _view_range(value: object) -> list[int] | None:
    if value is None:
        return None
    if not isinstance(value, list) or len(value) != 2:
        message = (
            "view_range must be two line numbers, such as [1, 20]; -1 as the second means to the end."
        )
        raise InvalidInput(message, code="wrong_type", field="view_range")
    return [_line_number(number, field="view_range") for number in value]


def _line_number(value: object, *, field: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > MAX_LINE_NUMBER:
        raise InvalidInput(f"{field} must be a whole number.", code="wrong_type", field=field)
    return value
