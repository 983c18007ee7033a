"""Where requests come from, and how many of them a bucket of tokens lets through."""

import time
from typing import Any

from django.conf import settings
from django.http import HttpRequest


def client_ip(request: HttpRequest) -> str:
    """The peer's address; behind a proxy (IZZY_BEHIND_PROXY) the last one X-Forwarded-For names, which is the
    one the proxy itself saw. Entries before it are the client's own words."""
    return _nearest(request.headers.get("X-Forwarded-For", ""), request.META.get("REMOTE_ADDR"))


def peer_ip(scope: dict[str, Any]) -> str:
    """The same of an ASGI scope, as of a websocket."""
    forwarded = [
        value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"
    ]
    return _nearest(",".join(forwarded), (scope.get("client") or [None])[0])


def _nearest(forwarded: str, peer: str | None) -> str:
    return (settings.IZZY_BEHIND_PROXY and forwarded.rpartition(",")[2].strip()) or str(peer or "")


class Bucket:
    """Holds `burst` tokens at most and gains `rate` a second; `left` below zero is a debt."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst, self._rate = burst, rate
        self._at = time.monotonic()
        self.left = burst

    def fill(self) -> float:
        """The tokens there are now."""
        now = time.monotonic()
        self.left = min(self._burst, self.left + (now - self._at) * self._rate)
        self._at = now
        return self.left

    def take(self) -> bool:
        """Take one token; False where there is none."""
        if self.fill() < 1:
            return False
        self.left -= 1
        return True


def base_url_of(request: HttpRequest) -> str:
    """The address of the site, as people and programs reach it. Raises DisallowedHost."""
    return settings.IZZY_PUBLIC_URL or f"{request.scheme}://{request.get_host()}"
