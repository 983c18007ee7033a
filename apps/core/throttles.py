"""REST throttling by user; IZZY_THROTTLE=off turns it off."""

import logging
from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import ScopedRateThrottle, SimpleRateThrottle, UserRateThrottle

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
