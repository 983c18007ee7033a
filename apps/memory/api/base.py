"""The base of the memory's REST views."""

from collections.abc import Mapping
from uuid import UUID

from rest_framework.permissions import SAFE_METHODS

from apps.core.http.rest import UserView
from apps.memory import selectors
from apps.memory.models import Memory, Origin
from apps.memory.services import Change


class NotesView(UserView):
    """Base of the views of notes: whose notes, and who changes them."""

    scopes: Mapping[str, str] = {}
    """By method, the scope a token needs where it is not `read` for GET and `write` for all else."""

    @property
    def throttle_scope(self) -> str | None:
        method = self.request.method or ""
        reads = method in SAFE_METHODS or self.scopes.get(method) == "read"
        return None if reads else "write"

    @property
    def origin(self) -> Origin:
        """A program came with a token, a person with the browser's session."""
        return Origin.API if self.request.auth else Origin.USER

    @property
    def change(self) -> Change:
        return Change(actor=self.origin)

    def note(self, memory_id: UUID) -> Memory:
        return selectors.memory_get(self.user_id, memory_id)
