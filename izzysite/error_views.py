"""Renders Django's refusals: JSON in the shape of `apps.core.errors` under /api/, a page elsewhere."""

from django.conf import settings
from django.core.exceptions import DisallowedHost, RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.template.loader import render_to_string
from django.urls import is_valid_path
from django.utils.deprecation import MiddlewareMixin

from apps.core.errors import Forbidden, InvalidInput, IzzyError, NotFound, TooLarge

SAFE_METHODS = ("GET", "HEAD")
TITLES = {
    400: "That request is malformed",
    403: "Not for you",
    404: "Nothing here",
    405: "Nothing to open here",
    413: "Too large",
}


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
<div class="bare-head"><h1>Something went wrong</h1><p>{message}</p></div>
<a class="btn btn-primary btn-block" href="/">Back to Izzy</a>
</div></main>
</body>
</html>
"""


UNKNOWN_HOST = (
    "Izzy does not answer under this name. Whoever runs it can allow the name with IZZY_ALLOWED_HOSTS, or with"
    " IZZY_PUBLIC_URL behind a proxy."
)


def error_response(request: HttpRequest, error: IzzyError, title: str = "") -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse(error.to_json(), status=error.status)
    title = title or TITLES.get(error.status, "Something went wrong")
    context = {"title": title, "message": error.message}
    return HttpResponse(render_to_string("error.html", context), status=error.status)


class SlashMiddleware(CommonMiddleware):
    """Redirects to the address with a slash at its end where there is one, but nothing that writes: many clients send
    GET to where they are redirected, and would take the answer to that for their success."""

    def should_redirect_with_slash(self, request: HttpRequest) -> bool:
        return request.method in SAFE_METHODS and super().should_redirect_with_slash(request)


class WrongMethodPageMiddleware(MiddlewareMixin):
    """A page where Django sends an empty 405: somebody opened an address that only takes forms."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        empty = isinstance(response, HttpResponse) and not response.content
        if response.status_code != 405 or not empty or not request.accepts("text/html"):
            return response
        error = IzzyError("This address takes what a form on another page sends.", code="method_not_allowed")
        error.status = 405
        page = error_response(request, error)
        page.headers["Allow"] = response.headers.get("Allow", "")
        return page


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent | TooManyFilesSent):
        return error_response(request, TooLarge("The request is larger than this server accepts."))
    if isinstance(exception, DisallowedHost):
        return error_response(request, InvalidInput(UNKNOWN_HOST, code="unknown_host"), "An unknown name")
    return error_response(request, InvalidInput("The request is malformed.", code="bad_request"))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, Forbidden("You may not see this.", code="forbidden"))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    slash = "" if request.path.endswith("/") else f"{request.path}/"
    hint = f" Did you mean {slash}?" if slash and is_valid_path(slash) else ""
    return error_response(request, NotFound(f"There is nothing at this address.{hint}"))


def server_error(request: HttpRequest) -> HttpResponse:
    """Renders no template in whose making the error may lie."""
    error = IzzyError("Something went wrong on the server. Its log says more.", code="server_error")
    if request.path.startswith("/api/"):
        return JsonResponse(error.to_json(), status=500)
    return HttpResponse(
        SERVER_ERROR_PAGE.format(static=f"/{settings.STATIC_URL.strip('/')}/", message=error.message),
        status=500,
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    message = "The page was open for too long or came from elsewhere. Reload it and try again."
    return error_response(request, Forbidden(message, code="csrf_failed"))
