"""The gate before every websocket: a bearer token, or the cookie together with this site's own Origin."""

from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

from apps.accounts.authentication import authenticate_bearer
from apps.core.db.pool import in_db
from apps.core.errors import NotAuthenticated

ASGIApp = Any
_DEFAULT_PORTS = {"http": 80, "https": 443}


class OriginOrToken:
    """With `Authorization: Bearer …` the token's user is put into the scope (`user`, and the APIToken as `token`) and
    the Origin does not count; without, the Origin must be this site's and `with_session` reads the cookie.
    Whoever has neither is refused with 403 before the handshake."""

    def __init__(self, with_session: ASGIApp, with_token: ASGIApp) -> None:
        self.with_session = with_session
        self.with_token = with_token

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> Any:
        headers = {name: value.decode("latin-1") for name, value in scope.get("headers", [])}
        if header := headers.get(b"authorization"):
            try:
                token = await in_db(authenticate_bearer, header)
            except NotAuthenticated:
                return await WebsocketDenier()(scope, receive, send)
            scope = {**scope, "user": token.user, "token": token}
            return await self.with_token(scope, receive, send)
        if not is_own_origin(headers.get(b"origin", ""), headers.get(b"host", "")):
            return await WebsocketDenier()(scope, receive, send)
        return await self.with_session({**scope, "token": None}, receive, send)


def is_own_origin(origin: str, host: str) -> bool:
    """Whether a browser's Origin is this site: the host that was asked, or IZZY_PUBLIC_URL."""
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    try:
        parts = urlsplit(origin)
        if settings.TLS and parts.scheme != "https":
            return False  # a page that came in the clear may be anybody's
        asked = urlsplit(f"//{host}")
        port = parts.port or _DEFAULT_PORTS.get(parts.scheme)
        same_port = port == (asked.port or _DEFAULT_PORTS.get(parts.scheme))
    except ValueError:
        return False
    return bool(parts.hostname) and parts.hostname == asked.hostname and same_port and is_allowed_host(host)


def is_allowed_host(host: str) -> bool:
    domain, _ = split_domain_port(host)
    return bool(domain) and validate_host(domain, settings.ALLOWED_HOSTS)
