"""What the REST views of a user's things share."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar, cast
from uuid import UUID

from django.core.validators import RegexValidator
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS
from rest_framework.views import APIView

from apps.core.errors import InvalidInput


class OpenInput(serializers.Serializer[Any]):
    """A body, or a part of one, in which fields that nobody knows are let pass. `openapi` is added to its description: what
    no field can say."""

    openapi: ClassVar[Mapping[str, Any]] = {}


class ClosedInput(OpenInput):
    """One in which such fields are refused."""


class TextField(serializers.CharField):
    """Text with at least one character that is no white space."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.validators.append(RegexValidator(r"\S", "It must not be empty."))


class TimeParameter(serializers.DateTimeField):
    """A time in an address; one without zone is UTC, and a plus may have become a space on the way."""

    def __init__(self, **options: Any) -> None:
        super().__init__(default_timezone=UTC, **options)

    def to_internal_value(self, value: Any) -> datetime:
        return super().to_internal_value(value.strip().replace(" ", "+") if "T" in value else value)


class UserView(APIView):
    """A view of the signed-in user's things; writing is throttled."""

    @property
    def throttle_scope(self) -> str | None:
        return None if (self.request.method or "") in SAFE_METHODS else "write"

    @property
    def user_id(self) -> UUID:
        return cast("UUID", self.request.user.pk)

    def parameters(self, shape: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The query parameters that were given, checked by the shape that OpenAPI shows; others are let pass.

        Raises InvalidInput, which names the first that is wrong."""
        given = shape(data=self.request.query_params.dict())
        if not given.is_valid():
            name, problems = next(iter(given.errors.items()))
            raise InvalidInput(f"{name}: {problems[0]}", field=str(name))
        return dict(given.validated_data)


def page_of(name: str, row: serializers.Serializer[Any]) -> serializers.Serializer[Any]:
    """The shape of a list's page, for OpenAPI."""
    fields: dict[str, Any] = {
        "count": serializers.IntegerField(),
        "next": serializers.URLField(allow_null=True),
        "previous": serializers.URLField(allow_null=True),
        "results": row,
    }
    return inline_serializer(name, fields)
