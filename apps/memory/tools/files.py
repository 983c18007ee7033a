"""The tool `memory`: files under /memories, for the model."""

import re
from dataclasses import replace
from posixpath import splitext
from typing import Any
from uuid import UUID

from apps.agent.protocols import FileAnswer
from apps.agent.results import UNTRUSTED
from apps.agent.tools.base import MAY_BE_BEHIND, Asking, Tier, Tool, ToolContext, ToolFailure, ToolOutput
from apps.core.database import in_db
from apps.core.errors import IzzyError
from apps.memory.files.commands import (
    COMMANDS,
    CREATE,
    DELETE,
    RENAME,
    REPLACE,
    SYNONYMS,
    VIEW,
    WRITTEN_FIELDS,
    command_name,
    command_run,
)
from apps.memory.files.paths import ROOT, clean_path
from apps.memory.models import Trust
from apps.memory.selectors.files import file_at, files_in
from apps.memory.services import BY_ASSISTANT, Change
from apps.memory.trust.reading import Reading

TOOLSET = "files"
RESULT_CHARS = 16_000
"""What the model is told that a view shows at most."""

NO_FILES = (
    "No memory is configured for this conversation, so no file can be read or written. Say so if the user asked for "
    "it, and go on without."
)


class MemoryFiles:
    """The memory files of one user: implements `apps.agent.protocols.FileTools`."""

    def __init__(
        self, *, user_id: UUID, change: Change = BY_ASSISTANT, reading: Reading | None = None
    ) -> None:
        self.user_id = user_id
        self.change = change
        self.reading = reading or Reading(user_id=user_id)

    async def run(self, fields: dict[str, Any]) -> FileAnswer:
        """The answer to one command, and whether it quotes what others wrote."""
        return await in_db(self._run, fields)

    def _run(self, fields: dict[str, Any]) -> FileAnswer:
        name = command_name(fields)
        change = self.change
        if name not in (VIEW, DELETE):
            change = replace(change, trust=self._trust(name, fields))
        text = command_run(user_id=self.user_id, fields=fields, change=change)
        return FileAnswer(text, self._quotes(name, fields))

    def _trust(self, name: str, fields: dict[str, Any]) -> Trust:
        """How far the words that a command brings in are trusted: the text, and the path of a file that it makes."""
        if name == RENAME:
            return self.reading.trust_of([_spoken(fields.get("new_path"))])
        texts = [str(fields[key]) for key in WRITTEN_FIELDS if fields.get(key)]
        makes = name == CREATE and file_at(self.user_id, clean_path(fields.get("path"))) is None
        return self.reading.trust_of([*texts, *([_spoken(fields.get("path"))] if makes else [])])

    def _quotes(self, name: str, fields: dict[str, Any]) -> bool:
        """Whether the answer shows lines of an untrusted file, or lists one."""
        if name not in (VIEW, REPLACE):
            return False
        path = clean_path(fields.get("path") or ROOT)
        file = file_at(self.user_id, path)
        if file is not None:
            return file.trust == Trust.UNTRUSTED
        return files_in(self.user_id, path).filter(trust=Trust.UNTRUSTED).exists()


async def memory(context: ToolContext, args: dict[str, Any]) -> ToolOutput | str:
    """One command."""
    if context.files is None:
        raise ToolFailure(NO_FILES)
    answer = await context.files.run(args)
    return ToolOutput(UNTRUSTED + answer.text, untrusted=True) if answer.untrusted else answer.text


def _spoken(path: object) -> str:
    """What a path says."""
    return re.sub(r"[-_/\s]+", " ", splitext(str(path).removeprefix(ROOT))[0]).strip()


TAKING = {
    DELETE: "It would delete what stands there.",
    CREATE: "It would overwrite a file.",
    REPLACE: "It would take something out of a file, or put something else in its place.",
    RENAME: "It would give files another name.",
}


def takes_away(args: dict[str, Any]) -> bool:
    """Whether a command may take away or change what a file holds or is called: what others wrote may be behind it."""
    command = str(args.get("command"))
    return SYNONYMS.get(command, command) in TAKING


def reason_to_ask(asking: Asking) -> str:
    """What a command would take away, for the card; "" for a new file, and for what cannot be done anyway."""
    try:
        command = command_name(asking.arguments)
        if command == CREATE and file_at(asking.user_id, clean_path(asking.arguments.get("path"))) is None:
            return ""
    except IzzyError:
        return ""
    return f"{MAY_BE_BEHIND} {TAKING[command]}"


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


MEMORY_FILES = Tool(
    name="memory",
    description=(
        "Keep text files about the user and your work for them in the directory /memories, which lasts across all "
        "conversations. View /memories before you rely on it or write to it, and read a file before you change it. "
        "Commands: view (path, view_range?) lists a directory two levels deep or shows a file with line numbers, up to "
        f"{RESULT_CHARS:,} characters; create (path, file_text) creates or overwrites a file; str_replace (path, "
        "old_str, new_str) replaces text that occurs exactly once; insert (path, insert_line, insert_text) puts text "
        "after a line, 0 for the top; delete (path) removes a file or a directory with all in it; rename (old_path, "
        "new_path) renames or moves. Paths begin with /memories. Use files for what has a structure and grows, such as "
        "a project with its to-do list; single facts belong in notes. The user can undo every change."
    ),
    input_schema={
        "type": "object",
        "properties": {"command": {"type": "string"}},
        "required": ["command"],
    },
    shown_schema={
        "type": "object",
        "properties": {
            "command": {"type": "string", "enum": list(COMMANDS), "description": "What to do."},
            "path": _text("File or directory, for all commands but rename, such as /memories/projects.md."),
            "view_range": {
                "type": "array",
                "items": {"type": "integer"},
                "minItems": 2,
                "maxItems": 2,
                "description": "For view of a file: first and last line; -1 as the last means to the end.",
            },
            "file_text": _text("For create: the whole content."),
            "old_str": _text("For str_replace: the text to replace, exactly as it stands in the file."),
            "new_str": _text("For str_replace: the new text; leave it out to delete the old one."),
            "insert_line": {
                "type": "integer",
                "minimum": 0,
                "description": "For insert: the line after which the text goes, 0 for the top.",
            },
            "insert_text": _text("For insert: the text."),
            "old_path": _text("For rename: what is renamed or moved."),
            "new_path": _text("For rename: its new path; it must not exist."),
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    handler=memory,
    tier=Tier.SIDE_EFFECTING,
    asks_when_untrusted=takes_away,
    reason=reason_to_ask,
    timeout=15.0,
    result_limit=RESULT_CHARS,
    toolset=TOOLSET,
    typed="memory_20250818",
)
