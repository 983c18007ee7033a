"""What Django itself refuses: JSON in the shape of `apps.core.errors` under /api/, a page elsewhere."""

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string

from apps.core.errors import Forbidden, InvalidInput, IzzyError, NotFound, TooLarge

TITLES = {400: "That request is malformed", 403: "Not for you", 404: "Nothing here", 413: "Too large"}


def error_response(request: HttpRequest, error: IzzyError) -> HttpResponse:
    if request.path.startswith("/api/"):
        return JsonResponse(error.to_json(), status=error.status)
    context = {"title": TITLES.get(error.status, "Something went wrong"), "message": error.message}
    return HttpResponse(render_to_string("error.html", context), status=error.status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent | TooManyFilesSent):
        return error_response(request, TooLarge("The request is larger than this server accepts."))
    return error_response(request, InvalidInput("The request is malformed.", code="bad_request"))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, Forbidden("You may not see this.", code="forbidden"))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return error_response(request, NotFound("There is nothing at this address."))


def server_error(request: HttpRequest) -> HttpResponse:
    """Renders no template in whose making the error may lie."""
    error = IzzyError("Something went wrong on the server. Its log says more.", code="server_error")
    if request.path.startswith("/api/"):
        return JsonResponse(error.to_json(), status=500)
    return HttpResponse(f"<!doctype html><title>Izzy</title><h1>Izzy</h1><p>{error.message}</p>", status=500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    message = "The page was open for too long or came from elsewhere. Reload it and try again."
    return error_response(request, Forbidden(message, code="csrf_failed"))
