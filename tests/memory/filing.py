"""Shared by the tests of file commands: running one, and looking at what it did."""

from typing import Any

import pytest

from apps.accounts.models import User
from apps.core.errors import IzzyError
from apps.memory.files.commands import command_run
from apps.memory.models import MemoryFile
from apps.memory.notes.revisions import BY_ASSISTANT


class Files:
    """The commands of one user."""

    def __init__(self, user: User) -> None:
        self.user = user

    def __call__(self, command: object, **fields: Any) -> str:
        return command_run(
            user_id=self.user.pk, fields={"command": command, **fields}, change=BY_ASSISTANT
        )

    def create(self, path: str, text: str = "x") -> None:
        self("create", path=path, file_text=text)

    def text(self, path: str) -> str:
        return MemoryFile.objects.for_user(self.user).get(path=path).content

    def paths(self) -> list[str]:
        return sorted(MemoryFile.objects.for_user(self.user).values_list("path", flat=True))


@pytest.fixture
def run(alice: User) -> Files:
    return Files(alice)


def refusal(run: Files, kind: type[IzzyError], command: object, **fields: Any) -> str:
    with pytest.raises(kind) as caught:
        run(command, **fields)
    return caught.value.message
