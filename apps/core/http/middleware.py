"""TLS where IZZY_PUBLIC_URL has it, and the Content-Security-Policy of every answer."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.http.request import split_domain_port
from django.middleware.security import SecurityMiddleware

from apps.core.http.observed import route_found

LOCAL_HOSTS = {"127.0.0.1", "localhost", "[::1]"}
PROBES = {"/healthz", "/readyz", "/metrics"}


class EdgeSecurityMiddleware(SecurityMiddleware):
    """With an https IZZY_PUBLIC_URL: what comes over plain http is sent there, all other answers say HSTS.

    Izzy itself sees the proxy's plain http alone. What the proxy says of the client (X-Forwarded-Proto) is good enough
    for that without IZZY_BEHIND_PROXY too: who makes it up is spared a redirect, and nothing else.

    Every answer has IZZY_CSP, under /admin/ IZZY_CSP_ADMIN, since unfold evaluates strings and styles inline.
    """

    def process_request(self, request: HttpRequest) -> HttpResponsePermanentRedirect | None:
        target = https_target(request)
        if not target:
            return None
        return HttpResponsePermanentRedirect(
            target, preserve_request=request.method not in {"GET", "HEAD"}
        )

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response = super().process_response(request, response)
        if (match := request.resolver_match) is not None:
            route_found(match.route)
        if settings.TLS and not isinstance(response, HttpResponsePermanentRedirect):
            response.headers.setdefault(
                "Strict-Transport-Security", f"max-age={settings.SECURE_HSTS_SECONDS}"
            )
        policy = settings.IZZY_CSP_ADMIN if request.path.startswith("/admin/") else settings.IZZY_CSP
        text = "; ".join(f"{directive} {' '.join(sources)}" for directive, sources in policy.items())
        response.headers.setdefault("Content-Security-Policy", text)
        return response


def https_target(request: HttpRequest) -> str:
    """The address to which a request is sent since it came over plain http, "" where it may stay."""
    if not settings.TLS or request.path in PROBES or not came_plain(request):
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
