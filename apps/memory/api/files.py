"""REST of the file memory: `/memory-files/`."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field
from rest_framework.request import Request

from apps.accounts.access import require_scope
from apps.accounts.models import APIToken, Scope
from apps.core.http.rest import Listed, operation
from apps.core.http.shapes import Checked, ClosedInput, Query, Refused, Shape, page_of
from apps.memory.files.commands import COMMANDS, VIEW, command_name, command_run
from apps.memory.files.selectors import file_get, file_history, files_in
from apps.memory.files.services import file_restore, file_undo
from apps.memory.files.texts import ROOT, clean_path
from apps.memory.models import MemoryFile, Origin, Trust

from .history_shapes import FileVersionOutput
from .notes import NotesView, version_wanted, versions_shown
from .shapes import RestoreInput, UndoInput

OLDER: dict[str, Any] = {"deprecated": True}


class FileOutput(Shape):
    """A file, without its content: `view` shows that."""

    id: UUID
    path: str
    size: int = Field(description="Bytes.")
    origin: Origin
    trust: Trust
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


class FilesQuery(Query):
    path: str = Field("", description="Only what lies in this directory.")
    deleted: bool = Field(False, description="Those deleted in the last 30 days instead.")


def _command(value: object, *, field: str) -> object:
    command_name({field: value})
    return value


class CommandInput(ClosedInput):
    """One command. The tool's documentation says which fields it needs; the older names are accepted too."""

    command: Annotated[str, Checked(_command, Literal[tuple(COMMANDS)]), Refused("")]
    path: str | None = Field(None, description=f"All but rename; {ROOT} or below.")
    view_range: Annotated[list[int] | None, Refused("wrong_type")] = None
    file_text: str | None = Field(None, description="create: the whole content.")
    old_str: str | None = Field(None, description="str_replace: text that occurs once.")
    new_str: str | None = Field(None, description="str_replace: absent deletes.")
    insert_line: Annotated[int | None, Refused("wrong_type")] = Field(
        None, description="insert: 0 is the top."
    )
    insert_text: str | None = None
    old_path: str | None = Field(None, description="rename")
    new_path: str | None = Field(None, description="rename")
    old_string: str | None = Field(None, json_schema_extra=OLDER)
    new_string: str | None = Field(None, json_schema_extra=OLDER)
    content: str | None = Field(None, json_schema_extra=OLDER)
    text: str | None = Field(None, json_schema_extra=OLDER)


class MemoryFileResult(Shape):
    result: str


class FilesView(NotesView):
    """All files, and the commands that read and change them."""

    scopes = {"POST": "read"}

    @property
    def throttle_scope(self) -> str | None:
        return "write" if self.request.method == "POST" else None

    @operation("memory_files_list", query=FilesQuery, answer=page_of("MemoryFilePage", FileOutput))
    def get(self, request: Request) -> Any:
        """List the files, by path."""
        given = self.query(FilesQuery)
        return files_in(self.user_id, clean_path(given.path or ROOT), deleted=given.deleted).defer(
            "content"
        )

    @operation("memory_files_command", body=CommandInput, answer=MemoryFileResult)
    def post(self, request: Request) -> dict[str, str]:
        """Run one command of the memory tool. A token that may only read may only `view`."""
        fields = self.body(CommandInput).given
        if command_name(fields) != VIEW:
            token = request.auth if isinstance(request.auth, APIToken) else None
            require_scope(token, str(Scope.WRITE))
        return {"result": command_run(user_id=self.user_id, fields=fields, change=self.change)}


class FileHistoryView(NotesView):
    """A file's versions."""

    @operation("memory_files_history", answer=page_of("FileVersionPage", FileVersionOutput))
    def get(self, request: Request, file_id: UUID) -> Listed:
        """The versions of a file that are kept, newest first; also of a deleted one."""
        return Listed(file_history(self.user_id, file_id), versions_shown)


class FileUndoView(NotesView):
    """The way back from a change."""

    @operation("memory_files_undo", body=UndoInput, answer=FileOutput)
    def post(self, request: Request, file_id: UUID) -> MemoryFile:
        """Bring a file back to the text and path of a former version, by default the one before the last change."""
        versions = file_history(self.user_id, file_id)
        version = version_wanted(self.body(UndoInput), versions)
        return file_undo(user_id=self.user_id, file_id=file_id, version=version, change=self.change)


class FileRestoreView(NotesView):
    """The way back of a deleted file."""

    @operation("memory_files_restore", body=RestoreInput, answer=FileOutput)
    def post(self, request: Request, file_id: UUID) -> MemoryFile:
        """Bring back a deleted file or, with `version`, what a file was in that version."""
        file_get(self.user_id, file_id)
        version = self.body(RestoreInput).version
        if version is None:
            return file_restore(user_id=self.user_id, file_id=file_id, change=self.change)
        return file_undo(user_id=self.user_id, file_id=file_id, version=version, change=self.change)
