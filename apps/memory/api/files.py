"""REST of the file memory: `/memory-files/`."""

from typing import Any

from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_auth import require_scope
from apps.accounts.models import APIToken, Scope
from apps.core.ids import parse_id
from apps.core.rest_views import ClosedInput, page_of
from apps.memory.files.commands import COMMANDS, VIEW, command_name, command_run
from apps.memory.files.paths import ROOT, clean_path
from apps.memory.models import MemoryFile, Origin, Trust
from apps.memory.selectors.files import file_get, file_history, files_in
from apps.memory.services import file_history as past

from .base import NotesView
from .inputs import body_object, version_given, version_wanted
from .output import time_json, version_json
from .serializers import FileVersionOutput, RestoreInput, UndoInput

FIELDS = (
    *("command", "path", "view_range", "file_text", "old_str", "new_str", "insert_line", "insert_text"),
    *("old_path", "new_path", "old_string", "new_string", "content", "text"),
)


class FileOutput(serializers.Serializer[Any]):
    """A file, without its content: `view` shows that."""

    id = serializers.UUIDField()
    path = serializers.CharField()
    size = serializers.IntegerField(help_text="Bytes.")
    origin = serializers.ChoiceField(Origin.choices)
    trust = serializers.ChoiceField(Trust.choices)
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()
    deleted_at = serializers.DateTimeField(allow_null=True)


class FilesQuery(serializers.Serializer[Any]):
    path = serializers.CharField(default="", allow_blank=True, help_text="Only what lies in this directory.")
    deleted = serializers.BooleanField(default=False, help_text="Those deleted in the last 30 days instead.")


class CommandInput(ClosedInput):
    """One command. Which fields it needs is told by the tool's documentation; the older names are accepted too."""

    command = serializers.ChoiceField(list(COMMANDS))
    path = serializers.CharField(required=False, help_text=f"All but rename; {ROOT} or below.")
    view_range = serializers.ListField(child=serializers.IntegerField(), required=False)
    file_text = serializers.CharField(required=False, help_text="create: the whole content.")
    old_str = serializers.CharField(required=False, help_text="str_replace: text that occurs once.")
    new_str = serializers.CharField(required=False, help_text="str_replace: absent deletes.")
    insert_line = serializers.IntegerField(required=False, help_text="insert: 0 is the top.")
    insert_text = serializers.CharField(required=False)
    old_path = serializers.CharField(required=False, help_text="rename")
    new_path = serializers.CharField(required=False, help_text="rename")


RESULT = inline_serializer("MemoryFileResult", {"result": serializers.CharField()})


@extend_schema(tags=["memories"])
class FilesView(NotesView):
    """All files, and the commands that read and change them."""

    scopes = {"POST": "read"}

    @property
    def throttle_scope(self) -> str | None:
        return "write" if self.request.method == "POST" else None

    @extend_schema(
        operation_id="memory_files_list",
        parameters=[FilesQuery],
        responses=page_of("MemoryFilePage", FileOutput(many=True)),
    )
    def get(self, request: Request) -> Response:
        """List the files, by path."""
        given = self.parameters(FilesQuery)
        files = files_in(self.user_id, clean_path(given["path"] or ROOT), deleted=given["deleted"])
        return self.page(files.defer("content"), file_json)

    @extend_schema(operation_id="memory_files_command", request=CommandInput, responses=RESULT)
    def post(self, request: Request) -> Response:
        """Run one command of the memory tool. A token that may only read may only `view`."""
        fields = body_object(request.data, FIELDS)
        if command_name(fields) != VIEW:
            token = request.auth if isinstance(request.auth, APIToken) else None
            require_scope(token, str(Scope.WRITE))
        result = command_run(user_id=self.user_id, fields=fields, change=self.change)
        return Response({"result": result})


@extend_schema(tags=["memories"])
class FileHistoryView(NotesView):
    """What a file was before."""

    @extend_schema(
        operation_id="memory_files_history",
        responses=page_of("FileVersionPage", FileVersionOutput(many=True)),
    )
    def get(self, request: Request, file_id: str) -> Response:
        """The versions of a file that are kept, newest first; also of a deleted one."""
        return self.page(file_history(self.user_id, parse_id(file_id)), version_json)


@extend_schema(tags=["memories"])
class FileUndoView(NotesView):
    """The way back from a change."""

    @extend_schema(operation_id="memory_files_undo", request=UndoInput, responses=FileOutput)
    def post(self, request: Request, file_id: str) -> Response:
        """Bring a file back to the text and path of a former version, by default the one before the last change."""
        key = parse_id(file_id)
        version = version_wanted(request.data, file_history(self.user_id, key))
        file = past.file_undo(user_id=self.user_id, file_id=key, version=version, change=self.change)
        return Response(file_json(file))


@extend_schema(tags=["memories"])
class FileRestoreView(NotesView):
    """The way back of a deleted file."""

    @extend_schema(operation_id="memory_files_restore", request=RestoreInput, responses=FileOutput)
    def post(self, request: Request, file_id: str) -> Response:
        """Bring back a deleted file or, with `version`, what a file was in that version."""
        key = parse_id(file_id)
        file_get(self.user_id, key)
        version = version_given(request.data)
        if version is None:
            file = past.file_restore(user_id=self.user_id, file_id=key, change=self.change)
        else:
            file = past.file_undo(user_id=self.user_id, file_id=key, version=version, change=self.change)
        return Response(file_json(file))


def file_json(file: MemoryFile) -> dict[str, Any]:
    """A file as lists show it."""
    return {
        "id": str(file.pk),
        "path": file.path,
        "size": file.size,
        "origin": file.origin,
        "trust": file.trust,
        "created_at": time_json(file.created_at),
        "updated_at": time_json(file.updated_at),
        "deleted_at": time_json(file.deleted_at),
    }
