"""REST: `GET /me/`."""

from datetime import datetime
from importlib.metadata import version
from typing import Any
from uuid import UUID

from django.urls import path
from rest_framework.request import Request

from apps.core.http.rest import UserView, operation
from apps.core.http.shapes import Shape

VERSION = version("izzy")


class UserOutput(Shape):
    id: UUID
    username: str


class TokenOutput(Shape):
    """An API token, without its secret."""

    name: str
    hint: str
    scopes: list[str]
    created_at: datetime
    expires_at: datetime | None


class MeOutput(Shape):
    """The asker and the server: `token` is null for a signed-in browser."""

    user: UserOutput
    token: TokenOutput | None
    version: str


class MeView(UserView):
    """The caller."""

    @operation("me", answer=MeOutput)
    def get(self, request: Request) -> dict[str, Any]:
        """Say who asks, with which token, and which version of Izzy answers."""
        return {"user": request.user, "token": request.auth, "version": VERSION}


urlpatterns = [path("me/", MeView.as_view(), name="me")]
