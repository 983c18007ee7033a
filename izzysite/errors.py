"""Renders refusals and failures: JSON in the shape of `apps.core.errors` from REST and under /api/, a page elsewhere."""

import logging
import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import (
    DisallowedHost,
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    TooManyFieldsSent,
    TooManyFilesSent,
    ValidationError,
)
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.middleware.common import CommonMiddleware
from django.urls import is_valid_path
from rest_framework import exceptions
from rest_framework.response import Response

from apps.core.db.troubles import unavailable
from apps.core.errors import (
    Forbidden,
    InvalidInput,
    IzzyError,
    NotAuthenticated,
    NotFound,
    Throttled,
    TooLarge,
)
from apps.core.http.middleware import error_response

logger = logging.getLogger(__name__)

SAFE_METHODS = ("GET", "HEAD")
MACHINE = (DatabaseError, OSError)
SERVER_ERROR_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Something went wrong · Izzy</title>
<link rel="icon" href="{static}img/icon.svg" type="image/svg+xml">
<script src="{static}js/theme.js"></script>
<link rel="stylesheet" href="{static}css/tokens.css">
<link rel="stylesheet" href="{static}css/base.css">
<link rel="stylesheet" href="{static}css/components.css">
<link rel="stylesheet" href="{static}css/shell.css">
</head>
<body>
<main class="bare"><div class="bare-box">
<div class="bare-head"><img class="brand-mark" src="{static}img/icon.svg" alt=""><h1>Something went wrong</h1><p>{message}</p></div>
<a class="btn btn-primary btn-block" href="/">Back to Izzy</a>
</div></main>
</body>
</html>
"""


UNEXPECTED = (
    "The server met an error it did not expect; its log says more. What was saved before is safe."
)
UNKNOWN_HOST = (
    "Izzy does not answer under this name. Whoever runs it can allow the name with IZZY_ALLOWED_HOSTS, or with"
    " IZZY_PUBLIC_URL behind a proxy."
)


class SlashMiddleware(CommonMiddleware):
    """Redirects to the address with a slash at its end where there is one, but nothing that writes: many clients send
    GET to where they are redirected, and would take the answer to that for their success."""

    def should_redirect_with_slash(self, request: HttpRequest) -> bool:
        return request.method in SAFE_METHODS and super().should_redirect_with_slash(request)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent | TooManyFilesSent):
        return error_response(request, TooLarge("The request is larger than this server accepts."))
    if isinstance(exception, DisallowedHost):
        return error_response(
            request, InvalidInput(UNKNOWN_HOST, code="unknown_host"), "An unknown name"
        )
    return error_response(request, InvalidInput("The request is malformed.", code="bad_request"))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, Forbidden("Your account may not open this page.", code="forbidden"))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    slash = "" if request.path.endswith("/") else f"{request.path}/"
    hint = f" Did you mean {slash}?" if slash and is_valid_path(slash) else ""
    return error_response(request, NotFound(f"There is nothing at this address.{hint}"))


def server_error(request: HttpRequest) -> HttpResponse:
    """Renders no template in whose making the error may lie."""
    raised = sys.exc_info()[1]
    if isinstance(raised, MACHINE) and (known := unavailable(raised)) is not None:
        return _bare(request, known)
    return _bare(request, IzzyError(UNEXPECTED, code="server_error"))


def _bare(request: HttpRequest, error: IzzyError) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse(error.to_json(), status=error.status)
    if request.headers.get("HX-Request"):  # a part of a page, which says it beside what is there
        return HttpResponse(error.message, content_type="text/plain", status=error.status)
    message = error.message
    if request.method == "POST":
        message += " What you wrote is still there where your browser's Back leads."
    return HttpResponse(
        SERVER_ERROR_PAGE.format(static=f"/{settings.STATIC_URL.strip('/')}/", message=message),
        status=error.status,
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    message = "The page was open for too long or came from elsewhere. Reload it and try again."
    return error_response(request, Forbidden(message, code="csrf_failed"))


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
        case DatabaseError() | OSError():
            return unavailable(exception)
    return None


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
        case exceptions.PermissionDenied() if str(exception.detail).startswith("CSRF"):
            return Forbidden("The request carries no valid CSRF token.", code="csrf_failed")
        case exceptions.PermissionDenied():
            return Forbidden(str(exception.detail), code="forbidden")
    error = IzzyError(str(exception.detail), code=str(exception.get_codes()))
    error.status = exception.status_code
    return error


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
