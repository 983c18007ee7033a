"""What all REST views of the memory share."""

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from rest_framework.permissions import SAFE_METHODS
from rest_framework.response import Response

from apps.core.pagination import Pages
from apps.core.rest_views import UserView
from apps.memory import selectors
from apps.memory.models import Origin
from apps.memory.services import Change

from .output import memory_json


class NotesView(UserView):
    """What the views of notes share: whose notes, who changes them, and the pages of lists."""

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

    def page(self, rows: Any, to_json: Callable[[Any], Any]) -> Response:
        """One page of `rows` as `{count, next, previous, results}`."""
        return self.pages_of(rows, lambda shown: list(map(to_json, shown)))

    def pages_of(self, rows: Any, to_rows: Callable[[list[Any]], list[Any]]) -> Response:
        """As `page`, for rows of which one page is made at a time."""
        pages = Pages()
        shown: list[Any] = list(pages.paginate_queryset(rows, self.request, view=self) or [])
        return pages.get_paginated_response(to_rows(shown))

    def note(self, memory_id: UUID) -> dict[str, Any]:
        return memory_json(selectors.memory_get(self.user_id, memory_id))
