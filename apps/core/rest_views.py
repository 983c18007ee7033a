"""What the REST views of a user's things share."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from typing import Any, ClassVar, NamedTuple, TypeVar, cast
from uuid import UUID

from django.core.validators import RegexValidator
from django.http import HttpResponseBase, QueryDict
from drf_spectacular.utils import extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.errors import InvalidInput
from apps.core.pagination import Pages
from apps.core.shapes import OpenInput as Input
from apps.core.shapes import Page, Query, Shape

Body = TypeVar("Body", bound=Input)
Parameters = TypeVar("Parameters", bound=Query)


@dataclass
class Described:
    """A shape as `extend_schema` takes it, which marks what it is given."""

    shape: type[Shape]
    partial: bool = False


class Answer(NamedTuple):
    """What a method returns where its status is not the first of the operation's."""

    value: Any
    status: int


class Listed(NamedTuple):
    """What a method returns where the rows of a page are made from those of the database."""

    rows: Any
    to_rows: Callable[[list[Any]], Iterable[Any]]


class Operation(NamedTuple):
    """The shapes of a method; what it returns is dumped by `answer`."""

    query: type[Query] | None
    body: type[Input] | None
    answer: type[Shape] | None


def operation(
    name: str,
    *,
    query: type[Query] | None = None,
    body: type[Input] | None = None,
    answer: type[Shape] | None = None,
    status: int | tuple[int, ...] = 200,
    described: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., HttpResponseBase]]:
    """A method of a REST view: what OpenAPI says of it, and how its result (a row, a dict, a page's rows, or a whole
    response) is answered. `described` goes to `extend_schema` beside the shapes."""
    statuses = status if isinstance(status, tuple) else (status,)
    more = dict(described or {})
    bodies = more.pop("request", {})
    responses = more.pop("responses", {})
    if answer or not responses:
        responses = {each: Described(answer) if answer else None for each in statuses} | responses

    def declare(method: Callable[..., Any]) -> Callable[..., HttpResponseBase]:
        @wraps(method)
        def answered(view: "UserView", request: Request, **kwargs: Any) -> HttpResponseBase:
            result = method(view, request, **kwargs)
            if isinstance(result, HttpResponseBase):
                return result
            value, code = result if isinstance(result, Answer) else (result, statuses[0])
            if answer is None:
                return Response(status=code)
            return Response(
                answer.dump(_page(view, value) if issubclass(answer, Page) else value), status=code
            )

        answered.operation = Operation(query, body, answer)  # type: ignore[attr-defined]
        shown = Described(body) if body else None
        return extend_schema(
            operation_id=name,
            parameters=[*more.pop("parameters", []), *([cast("Any", Described(query))] if query else [])],
            request={"application/json": shown, **bodies} if bodies else shown,
            responses=responses,
            **more,
        )(answered)

    return declare


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

    def body(self, shape: type[Body], sent: object = None) -> Body:
        """The body (or what was made of it) as the operation's shape has it; a form is none."""
        data = self.request.data if sent is None else sent
        return shape.read(None if isinstance(data, QueryDict) else data)

    def query(self, shape: type[Parameters]) -> Parameters:
        """The query parameters that were given; an empty one is none, and others are let pass."""
        return shape.read({name: value for name, value in self.request.query_params.items() if value})

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


def _page(view: APIView, rows: Any) -> dict[str, Any]:
    """The page of these rows that the address asks for."""
    listed, to_rows = rows if isinstance(rows, Listed) else (rows, list)
    pages = Pages()
    shown: list[Any] = list(pages.paginate_queryset(listed, view.request, view=view) or [])
    answer: dict[str, Any] = pages.get_paginated_response(to_rows(shown)).data
    return answer
