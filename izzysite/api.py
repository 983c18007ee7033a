"""REST at the outermost layer: errors in one shape, the schema and its page."""

import logging
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation, ValidationError
from django.db import DatabaseError
from django.http import Http404
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework import exceptions
from rest_framework.response import Response

import izzysite.openapi  # noqa: F401  registers how to sign in
from apps.core.db.troubles import explain
from apps.core.errors import (
    Forbidden,
    InvalidInput,
    IzzyError,
    NotAuthenticated,
    NotFound,
    Throttled,
    TooLarge,
    Unavailable,
)

logger = logging.getLogger(__name__)


class SchemaView(SpectacularAPIView):
    """The OpenAPI description of everything under /api/v1/, as JSON."""

    renderer_classes = [OpenApiJsonRenderer]


class SwaggerView(SpectacularSwaggerSplitView):
    """Swagger UI, with script and style in files of their own, as the Content-Security-Policy asks."""

    template_name = "api/docs.html"


def exception_handler(exception: Exception, context: dict[str, Any]) -> Response | None:
    """Every failure of a REST view as `{code, message, extra}`; None (a 500) only for what is a bug."""
    error = as_izzy_error(exception)
    if error is None:
        return None
    headers = {}
    if isinstance(error, NotAuthenticated):
        headers["WWW-Authenticate"] = 'Bearer realm="izzy"'
    if (wait := error.extra.get("retry_after")) is not None:
        headers["Retry-After"] = str(wait)
    return Response(error.to_json(), status=error.status, headers=headers)


def as_izzy_error(exception: Exception) -> IzzyError | None:
    match exception:
        case IzzyError():
            return exception
        case exceptions.APIException():
            return _from_rest_framework(exception)
        case Http404():
            return NotFound()
        case PermissionDenied():
            return Forbidden(code="forbidden")
        case RequestDataTooBig():
            return TooLarge("The request is larger than this server accepts.")
        case SuspiciousOperation():
            return InvalidInput("The request is malformed.", code="bad_request")
        case ValidationError():
            return InvalidInput("; ".join(exception.messages))
        case DatabaseError():
            return _from_database(exception)
    return None


def _from_database(exception: DatabaseError) -> IzzyError | None:
    """503 where the machine is in trouble, such as a full disk: the same request will do when that is over."""
    trouble = explain(exception)
    if trouble is None or not trouble.passing:
        return None
    logger.error("%s %s", trouble.message, trouble.hint, exc_info=exception)
    message = f"{trouble.message} Nothing can be saved until that is mended."
    return Unavailable(message, code="database_unavailable")


def _from_rest_framework(exception: exceptions.APIException) -> IzzyError:
    match exception:
        case exceptions.ValidationError():
            return InvalidInput(_first_message(exception.detail), fields=exception.detail)
        case exceptions.ParseError():
            return InvalidInput(str(exception.detail), code="malformed_json")
        case exceptions.NotAuthenticated() | exceptions.AuthenticationFailed():
            return NotAuthenticated()
        case exceptions.Throttled():
            wait = max(1, round(getattr(exception, "wait", None) or 1))
            return Throttled(f"Too many requests. Try again in {wait} seconds.", retry_after=wait)
        case exceptions.PermissionDenied():
            return _denied(exception)
    error = IzzyError(str(exception.detail), code=str(exception.get_codes()))
    error.status = exception.status_code
    return error


def _denied(exception: exceptions.PermissionDenied) -> IzzyError:
    text = str(exception.detail)
    if text.startswith("CSRF"):
        return Forbidden("The request carries no valid CSRF token.", code="csrf_failed")
    return Forbidden(text, code="forbidden")


def _first_message(detail: Any, field: str = "") -> str:
    """The first message in a nest of lists and dicts, with the name of the field it belongs to."""
    if isinstance(detail, dict):
        for key, value in detail.items():
            if value:
                return _first_message(value, "" if key == "non_field_errors" else str(key))
    if isinstance(detail, list):
        for value in detail:
            if value:
                return _first_message(value, field)
    return f"{field}: {detail}" if field else str(detail)
