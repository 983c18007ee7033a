"""REST: the folders that conversations are sorted into."""

from typing import Annotated
from uuid import UUID

from pydantic import Field
from rest_framework.request import Request

from apps.chat.conversations import folders
from apps.chat.conversations.folders import MAX_NAME
from apps.chat.models import Folder
from apps.core.errors import NotFound
from apps.core.http.rest import Listed, UserView, operation
from apps.core.http.shapes import ABSENT, Moment, OpenInput, Shape, page_of, text


class FolderInput(OpenInput):
    name: Annotated[str, text(MAX_NAME)]


class FolderChangeInput(OpenInput):
    name: Annotated[str, text(MAX_NAME)] = ABSENT
    opened: bool = Field(ABSENT, description="Whether the list beside every page shows what is in it.")


class FolderOutput(Shape):
    id: UUID
    name: str
    opened: bool
    conversations: int = Field(description="How many are in it, archived ones apart.")
    created_at: Moment


class FoldersView(UserView):
    """`GET POST /folders/`."""

    @operation("folders_list", answer=page_of("FolderPage", FolderOutput))
    def get(self, request: Request) -> Listed:
        """List the folders of conversations, by name."""
        return Listed(folders.folders_counted(self.user_id), list)

    @operation("folders_create", body=FolderInput, answer=FolderOutput, status=201)
    def post(self, request: Request) -> Folder:
        """Make a folder. A conversation goes into it by its own `folder`."""
        made = folders.folder_create(user_id=self.user_id, name=self.body(FolderInput).name)
        return _read(self.user_id, made.pk)


class FolderView(UserView):
    """`PATCH DELETE /folders/{id}/`."""

    @operation("folders_update", body=FolderChangeInput, answer=FolderOutput)
    def patch(self, request: Request, folder_id: str) -> Folder:
        """Rename a folder, or open or close it in the list."""
        key = folders.folder_get(self.user_id, folder_id).pk
        given = self.body(FolderChangeInput)
        folders.folder_change(user_id=self.user_id, folder_id=key, name=given.name, opened=given.opened)
        return _read(self.user_id, key)

    @operation("folders_delete", status=204)
    def delete(self, request: Request, folder_id: str) -> None:
        """Delete a folder. The conversations in it stay."""
        folders.folder_delete(user_id=self.user_id, folder_id=folder_id)


def _read(user_id: UUID, folder_id: UUID) -> Folder:
    found = folders.folders_counted(user_id).filter(pk=folder_id).first()
    if found is None:
        raise NotFound("There is no folder with this id.")
    return found
