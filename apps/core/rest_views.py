"""What the REST views of a user's things share."""

from typing import Any, cast
from uuid import UUID

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS
from rest_framework.views import APIView


class UserView(APIView):
    """A view of the signed-in user's things; writing is throttled."""

    @property
    def throttle_scope(self) -> str | None:
        return None if (self.request.method or "") in SAFE_METHODS else "write"

    @property
    def user_id(self) -> UUID:
        return cast("UUID", self.request.user.pk)


def page_of(name: str, row: serializers.Serializer[Any]) -> serializers.Serializer[Any]:
    """The shape of a list's page, for OpenAPI."""
    fields: dict[str, Any] = {
        "count": serializers.IntegerField(),
        "next": serializers.URLField(allow_null=True),
        "previous": serializers.URLField(allow_null=True),
        "results": row,
    }
    return inline_serializer(name, fields)
