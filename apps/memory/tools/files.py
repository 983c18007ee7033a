"""The tool `memory`: files under /memories, for the model."""

import re
from dataclasses import dataclass, replace
from posixpath import splitext
from typing import Annotated, Any
from uuid import UUID

from apps.agent.selectors import ConversationTaint
from apps.agent.tools.base import (
    MAY_BE_BEHIND,
    ApprovalQuery,
    Tier,
    ToolContext,
    ToolOutput,
    input_schema,
    tool,
)
from apps.agent.tools.results import UNTRUSTED
from apps.core.errors import IzzyError
from apps.memory.files.commands import (
    COMMANDS,
    CREATE,
    DELETE,
    RENAME,
    REPLACE,
    VIEW,
    WRITTEN_FIELDS,
    command_name,
    command_run,
)
from apps.memory.files.selectors import file_at, files_in
from apps.memory.files.texts import ROOT, clean_path
from apps.memory.models import Trust
from apps.memory.trust import texts_judged

from .search import change_by

RESULT_CHARS = 16_000  # the most that a view shows, as the model's description says

TAKING = {
    DELETE: "It would delete what stands there.",
    CREATE: "It would overwrite a file.",
    REPLACE: "It would take something out of a file, or put something else in its place.",
    RENAME: "It would give files another name.",
}


def takes_away(query: ApprovalQuery) -> str:
    """Says on the card what a command takes away; "" where it adds alone, and for what cannot be done anyway."""
    try:
        command = command_name(query.arguments)
        if command == CREATE and file_at(query.user_id, clean_path(query.arguments.get("path"))) is None:
            return ""
    except IzzyError:
        return ""
    return f"{MAY_BE_BEHIND} {TAKING[command]}" if command in TAKING else ""


@dataclass(frozen=True, slots=True)
class Command:
    command: Annotated[str, {"enum": list(COMMANDS)}, "What to do."]
    path: Annotated[
        str, "File or directory, for all commands but rename, such as /memories/projects.md."
    ] = ""
    view_range: Annotated[
        list[int] | None,
        {"minItems": 2, "maxItems": 2},
        "For view of a file: first and last line; -1 as the last means to the end.",
    ] = None
    file_text: Annotated[str, "For create: the whole content."] = ""
    old_str: Annotated[
        str, "For str_replace: the text to replace, exactly as it stands in the file."
    ] = ""
    new_str: Annotated[str, "For str_replace: the new text; leave it out to delete the old one."] = ""
    insert_line: Annotated[
        int, {"minimum": 0}, "For insert: the line after which the text goes, 0 for the top."
    ] = 0
    insert_text: Annotated[str, "For insert: the text."] = ""
    old_path: Annotated[str, "For rename: what is renamed or moved."] = ""
    new_path: Annotated[str, "For rename: its new path; it must not exist."] = ""


@tool(
    description=(
        "Keep text files about the user and your work for them in the directory /memories, which lasts across all "
        "conversations. View /memories before you rely on it or write to it, and read a file before you change it. "
        "Commands: view lists a directory two levels deep or shows a file with line numbers, up to "
        f"{RESULT_CHARS:,} characters; create creates or overwrites a file; str_replace replaces text that occurs exactly "
        "once; insert puts text after a line; delete removes a file or a directory with all in it; rename renames or "
        "moves. Paths begin with /memories. Use files for what has a structure and grows, such as "
        "a project with its to-do list; single facts belong in notes. The user can undo every change."
    ),
    input_schema={
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
    shown_schema=input_schema(Command),
    tier=Tier.SIDE_EFFECTING,
    takes=takes_away,
    result_limit=RESULT_CHARS,
    toolset="files",
    needs_memory=True,
    typed="memory_20250818",
    title="Read or change your memory files",
    doing="Changing a memory file",
    done="Changed a memory file",
    shows=("path", "old_path"),
    icon="memory",
    variants={
        VIEW: ("View", "Reading memory files", "Read memory files"),
        CREATE: ("Create", "Writing a memory file", "Wrote a memory file"),
        REPLACE: ("Update", "Changing a memory file", "Changed a memory file"),
        "insert": ("Add to", "Changing a memory file", "Changed a memory file"),
        DELETE: ("Delete", "Deleting a memory file", "Deleted a memory file"),
        RENAME: ("Rename", "Renaming a memory file", "Renamed a memory file"),
    },
)
def memory(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput | str:
    """One command with its fields, also under the older names that models know them by."""
    name = command_name(arguments)
    change = change_by(context)
    if name not in (VIEW, DELETE):
        change = replace(change, trust=_trust(context.taint, name, arguments))
    text = command_run(user_id=context.user_id, fields=arguments, change=change)
    if _quotes(context.user_id, name, arguments):
        return ToolOutput(UNTRUSTED + text, untrusted=True)
    return text


def _trust(taint: ConversationTaint, name: str, fields: dict[str, Any]) -> Trust:
    """How far the words that a command brings in are trusted: the text, and the path of a file that it makes."""
    if name == RENAME:
        return texts_judged(taint, [_spoken(fields.get("new_path"))])
    texts = [str(fields[key]) for key in WRITTEN_FIELDS if fields.get(key)]
    makes = name == CREATE and file_at(taint.user_id, clean_path(fields.get("path"))) is None
    return texts_judged(taint, [*texts, *([_spoken(fields.get("path"))] if makes else [])])


def _quotes(user_id: UUID, name: str, fields: dict[str, Any]) -> bool:
    """Whether the answer shows lines of an untrusted file, or lists one."""
    if name not in (VIEW, REPLACE):
        return False
    path = clean_path(fields.get("path") or ROOT)
    file = file_at(user_id, path)
    if file is not None:
        return file.trust == Trust.UNTRUSTED
    return files_in(user_id, path).filter(trust=Trust.UNTRUSTED).exists()


def _spoken(path: object) -> str:
    """Words of a path."""
    return re.sub(r"[-_/\s]+", " ", splitext(str(path).removeprefix(ROOT))[0]).strip()
