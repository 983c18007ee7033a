"""Where a request comes from."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest


def client_ip(request: HttpRequest) -> str:
    """The peer's address; behind a proxy (IZZY_BEHIND_PROXY) the last one X-Forwarded-For names, which is the
    one the proxy itself saw. Entries before it are the client's own words."""
    return _nearest(request.headers.get("X-Forwarded-For", ""), request.META.get("REMOTE_ADDR"))


def peer_ip(scope: dict[str, Any]) -> str:
    """The same of an ASGI scope, as of a websocket."""
    forwarded = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return _nearest(",".join(forwarded), (scope.get("client") or [None])[0])


def _nearest(forwarded: str, peer: str | None) -> str:
    return (settings.IZZY_BEHIND_PROXY and forwarded.rpartition(",")[2].strip()) or str(peer or "")
