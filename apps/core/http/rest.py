"""The base of the REST views of users' rows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

from django.http import HttpResponseBase, QueryDict
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.core.db.pool import repeated
from apps.core.http.drf import Pages
from apps.core.http.shapes import OpenInput, Page, Query, Shape

Body = TypeVar("Body", bound=OpenInput)
Parameters = TypeVar("Parameters", bound=Query)


@dataclass
class Described:
    """A shape as `extend_schema` takes it, which marks what it is given."""

    shape: type[Shape]
    partial: bool = False


def event_stream_of(component: str, text: str) -> OpenApiResponse:
    """Describes an answer of server-sent events, each with the JSON of a component as its data, which OpenAPI 3.0 can only say in an
    extension."""
    data: dict[str, Any] = {"type": "string", "description": f"The JSON of a {component}."}
    data["x-content-schema"] = {"$ref": f"#/components/schemas/{component}"}
    event = {
        "event": {"type": "string", "description": "Its type."},
        "id": {"type": "string"},
        "data": data,
    }
    return OpenApiResponse({"type": "object", "required": ["event", "data"], "properties": event}, text)


class Answer(NamedTuple):
    """A method's result with a status that is not the operation's first."""

    value: Any
    status: int


class Listed(NamedTuple):
    """A method's result where a page's rows are made from the database's."""

    rows: Any
    to_rows: Callable[[list[Any]], Iterable[Any]]


class Operation(NamedTuple):
    """The shapes of a method; what it returns is dumped by `answer`."""

    query: type[Query] | None
    body: type[OpenInput] | None
    answer: type[Shape] | None


def operation(
    name: str,
    *,
    query: type[Query] | None = None,
    body: type[OpenInput] | None = None,
    answer: type[Shape] | None = None,
    status: int | tuple[int, ...] = 200,
    described: Mapping[str, Any] | None = None,  # for `extend_schema`, beside the shapes
) -> Callable[[Callable[..., Any]], Callable[..., HttpResponseBase]]:
    """Declares what OpenAPI says of a view's method, and how its result (row, dict, page's rows, response) is answered."""
    statuses = status if isinstance(status, tuple) else (status,)
    more = dict(described or {})
    bodies = more.pop("request", {})
    responses = more.pop("responses", {})
    parameters = [cast("Any", Described(query))] if query else []
    if answer or not responses:
        responses = {each: Described(answer) if answer else None for each in statuses} | responses

    def declare(method: Callable[..., Any]) -> Callable[..., HttpResponseBase]:
        @wraps(method)
        def answered(view: "UserView", request: Request, **kwargs: Any) -> HttpResponseBase:
            result = repeated(partial(method, view, request, **kwargs))
            if isinstance(result, HttpResponseBase):
                return result
            value, code = result if isinstance(result, Answer) else (result, statuses[0])
            if answer is not None:
                value = answer.model_validate(_page(view, value) if issubclass(answer, Page) else value)
            return Response(value if answer else None, status=code)

        answered.operation = Operation(query, body, answer)  # type: ignore[attr-defined]
        shown = Described(body) if body else None
        return extend_schema(
            operation_id=name,
            parameters=[*more.pop("parameters", []), *parameters],
            request={"application/json": shown, **bodies} if bodies else shown,
            responses=responses,
            **more,
        )(answered)

    return declare


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
        """The query parameters that were given; others are let pass."""
        return shape.read(self.request.query_params.dict())


def _page(view: APIView, rows: Any) -> dict[str, Any]:
    """The page of these rows that the address asks for."""
    listed, to_rows = rows if isinstance(rows, Listed) else (rows, list)
    pages = Pages()
    shown: list[Any] = list(pages.paginate_queryset(listed, view.request, view=view) or [])
    answer: dict[str, Any] = pages.get_paginated_response(to_rows(shown)).data
    return answer
