"""Where requests come from, and how many are taken. IZZY_THROTTLE=off turns limits off."""

import logging
import time
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from rest_framework.request import Request
from rest_framework.throttling import ScopedRateThrottle, SimpleRateThrottle, UserRateThrottle


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


logger = logging.getLogger(__name__)


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
