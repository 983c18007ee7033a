"""JSON in and out, strictly (what cannot be stored or would crash a parser is refused at the edge), lists by pages, and how many
requests are taken (IZZY_THROTTLE=off turns limits off)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import IO, Any

from django.conf import settings
from django.core.paginator import Paginator
from pydantic_core import to_json
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.pagination import PageNumberPagination
from rest_framework.parsers import BaseParser, JSONParser
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.throttling import ScopedRateThrottle, SimpleRateThrottle, UserRateThrottle

from apps.core.errors import InvalidInput
from apps.core.http.shapes import Shape
from apps.core.text import strict_loads, unstorable

logger = logging.getLogger(__name__)


def parse_json(body: bytes, what: str = "body") -> Any:
    """The value of a request's body; errors call it `what`. Raises InvalidInput (`malformed_json`, `invalid_text`) for anything
    but JSON in UTF-8 nested at most about 1,000 deep, free of NUL, lone surrogates, NaN and infinities."""
    try:
        data = strict_loads(body.decode("utf-8"))
    except RecursionError as error:
        raise InvalidInput("The JSON is nested too deeply.", code="malformed_json") from error
    except ValueError as error:
        raise InvalidInput(f"The {what} is not valid JSON: {error}", code="malformed_json") from error
    if found := unstorable(data, body):
        raise InvalidInput(f"The {what} contains {found}.", code="invalid_text")
    return data


class StrictJSONParser(JSONParser):
    """The parser of every REST view; an empty body is the empty object."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = stream.read()
        return parse_json(body) if body else {}


class ShapeRenderer(JSONRenderer):
    """The renderer of every REST view; shapes are written without a dict of each row, in half the time."""

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        if isinstance(data, Shape):
            return to_json(data)
        return super().render(data, accepted_media_type, renderer_context)


class AlwaysJSON(BaseContentNegotiation):
    """Answer JSON whatever Accept says; choose the parser by Content-Type, taking a missing one for JSON."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        content_type = (request.content_type or "").partition(";")[0].strip().lower()
        matching = (parser for parser in parsers if parser.media_type == content_type)
        return next(matching, None if content_type else next(iter(parsers)))

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, renderer.media_type or ""


class LenientThrottle(SimpleRateThrottle):
    """Lets everybody through while the Redis that counts is away: Izzy goes on without it."""

    def allow_request(self, request: Request, view: Any) -> bool:
        if not settings.IZZY_THROTTLE:
            return True
        if not settings.REDIS_URL:
            return super().allow_request(request, view)
        # Here and not above: the client takes a quarter of a second to import, and most do not use it.
        from redis.exceptions import RedisError

        try:
            return super().allow_request(request, view)
        except (OSError, RedisError) as error:
            logger.warning("requests are not counted, Redis does not answer: %s", error)
            return True


class UserThrottle(LenientThrottle, UserRateThrottle):
    """All requests of a user together, at the rate `user`."""


class ScopeThrottle(LenientThrottle, ScopedRateThrottle):
    """A view that names a `throttle_scope` is limited at that scope's rate too."""


class Pages(PageNumberPagination):
    """Lists as `{count, next, previous, results}`, with `?page=` and `?page_size=` up to 200."""

    page_size_query_param = "page_size"
    max_page_size = 200

    def get_page_size(self, request: Request) -> int | None:
        """Raises InvalidInput for what is no number of rows; more than 200 are 200."""
        given = request.query_params.get("page_size")
        if given is not None and not (given.isascii() and given.isdigit() and given.strip("0")):
            raise InvalidInput("page_size must be a whole number from 1.", field="page_size")
        return super().get_page_size(request)

    def get_page_number(self, request: Request, paginator: Paginator[Any]) -> str:
        """Raises InvalidInput for an empty one; what there is no page of is not found."""
        if request.query_params.get("page") == "":
            raise InvalidInput("page must be a whole number from 1.", field="page")
        return str(super().get_page_number(request, paginator))
