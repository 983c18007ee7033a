"""REST of the file memory: `/memory-files/`."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts.api_auth import require_scope
from apps.accounts.models import APIToken, Scope

from .api import NotesView
from .files.commands import COMMANDS, VIEW, command_name, command_run
from .files.paths import ROOT, clean_path
from .inputs import body_object
from .models import MemoryFile, Origin
from .output import time_json
from .selectors.files import files_in
from .serializers import page_of

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
    created_at = serializers.DateTimeField()
    updated_at = serializers.DateTimeField()


class CommandInput(serializers.Serializer[Any]):
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
        parameters=[OpenApiParameter("path", str, description="Only what lies in this directory.")],
        responses=page_of("MemoryFilePage", FileOutput(many=True)),
    )
    def get(self, request: Request) -> Response:
        """List the files, by path."""
        directory = clean_path(request.query_params.get("path") or ROOT)
        return self.page(files_in(self.user_id, directory).defer("content"), file_json)

    @extend_schema(operation_id="memory_files_command", request=CommandInput, responses=RESULT)
    def post(self, request: Request) -> Response:
        """Run one command of the memory tool. A token that may only read may only `view`."""
        fields = body_object(request.data, FIELDS)
        if command_name(fields) != VIEW:
            token = request.auth if isinstance(request.auth, APIToken) else None
            require_scope(token, str(Scope.WRITE))
        result = command_run(user_id=self.user_id, fields=fields, change=self.change)
        return Response({"result": result})


def file_json(file: MemoryFile) -> dict[str, Any]:
    """A file as lists show it."""
    return {
        "id": str(file.pk),
        "path": file.path,
        "size": file.size,
        "origin": file.origin,
        "created_at": time_json(file.created_at),
        "updated_at": time_json(file.updated_at),
    }
