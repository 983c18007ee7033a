"""TLS where IZZY_PUBLIC_URL has it, the Content-Security-Policy of every answer, and pages of errors."""

from functools import partial
from typing import Any

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect, JsonResponse
from django.http.request import split_domain_port
from django.http.response import HttpResponseBase
from django.middleware.security import SecurityMiddleware
from django.template.loader import render_to_string
from django.utils.deprecation import MiddlewareMixin

from apps.core.db.pool import repeated
from apps.core.errors import IzzyError
from apps.core.log_ids import log_ids_add

LOCAL_HOSTS = {"127.0.0.1", "localhost", "[::1]"}
PROBES = {"/healthz", "/readyz", "/metrics"}
TITLES = {
    400: "That request is malformed",
    403: "Not for you",
    404: "Nothing here",
    405: "Nothing to open here",
    413: "Too large",
}


class EdgeSecurityMiddleware(SecurityMiddleware):
    """With an https IZZY_PUBLIC_URL: what comes over plain http is sent there, all other answers say HSTS.

    Izzy itself sees the proxy's plain http alone. What the proxy says of the client (X-Forwarded-Proto) is good enough
    for that without IZZY_BEHIND_PROXY too: who makes it up is spared a redirect, and nothing else.

    Where Django sends an empty 405 there is a page instead. Every answer has IZZY_CSP, under /admin/ IZZY_CSP_ADMIN, since unfold evaluates strings and styles inline.
    """

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        if not settings.TLS or not (target := https_target(request)):
            return None
        return HttpResponsePermanentRedirect(
            target, preserve_request=request.method not in {"GET", "HEAD"}
        )

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response = super().process_response(request, response)
        empty = isinstance(response, HttpResponse) and not response.content
        if response.status_code == 405 and empty and request.accepts("text/html"):
            say_wrong_method(request, response)
        if (match := request.resolver_match) is not None:
            log_ids_add(route=match.route)
        if settings.TLS and not isinstance(response, HttpResponsePermanentRedirect):
            response.headers.setdefault(
                "Strict-Transport-Security", f"max-age={settings.SECURE_HSTS_SECONDS}"
            )
        policy = settings.IZZY_CSP_ADMIN if request.path.startswith("/admin/") else settings.IZZY_CSP
        text = "; ".join(f"{directive} {' '.join(sources)}" for directive, sources in policy.items())
        response.headers.setdefault("Content-Security-Policy", text)
        return response


def https_target(request: HttpRequest) -> str:
    """The address to which a request is sent since it came over plain http, "" where it may stay; asked where there is TLS."""
    if request.path in PROBES or not came_plain(request):
        return ""
    return f"{settings.IZZY_PUBLIC_URL}{request.get_full_path()}"


def came_plain(request: HttpRequest) -> bool:
    """Whether the client spoke http. Where no proxy says so: not on this machine itself, and not in browsers that send
    Sec-Fetch-Site, which they do over https alone; so behind a proxy that tells nothing none goes in circles."""
    said = request.headers.get("X-Forwarded-Proto", "").rpartition(",")[2].strip().lower()
    if request.is_secure() or said:
        return not request.is_secure() and said != "https"
    host, _ = split_domain_port(request.get_host())
    return host not in LOCAL_HOSTS and "Sec-Fetch-Site" not in request.headers


class RepeatMiddleware(MiddlewareMixin):
    """Asks a page's view again where the database called its work off (`repeated`)."""

    def process_view(
        self, request: HttpRequest, view: Any, arguments: Any, named: Any
    ) -> HttpResponseBase | None:
        if iscoroutinefunction(view):
            return None
        answer: HttpResponseBase = repeated(partial(view, request, *arguments, **named))
        return answer


def say_wrong_method(request: HttpRequest, response: HttpResponse) -> None:
    """Makes a page of an empty 405: somebody opened an address that only takes forms."""
    error = IzzyError("This address takes what a form on another page sends.", code="method_not_allowed")
    error.status = 405
    page = error_response(request, error)
    response.content = page.content
    response.headers["Content-Length"] = str(len(page.content))
    response.headers["Content-Type"] = page.headers["Content-Type"]


def error_response(request: HttpRequest, error: IzzyError, title: str = "") -> HttpResponse:
    """An error as JSON under /api/, elsewhere as a page."""
    if request.path.startswith("/api/"):
        return JsonResponse(error.to_json(), status=error.status)
    title = title or TITLES.get(error.status, "Something went wrong")
    # The cookie says so well enough: to ask the database here would be work after the request's own.
    signed_in = settings.SESSION_COOKIE_NAME in request.COOKIES
    context = {"title": title, "message": error.message, "signed_in": signed_in}
    return HttpResponse(render_to_string("error.html", context), status=error.status)
