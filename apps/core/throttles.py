"""REST throttling by user; IZZY_THROTTLE=off turns it off."""

from typing import Any

from django.conf import settings
from rest_framework.request import Request
from rest_framework.throttling import ScopedRateThrottle, UserRateThrottle


class UserThrottle(UserRateThrottle):
    """All requests of a user together, at the rate `user`."""

    def allow_request(self, request: Request, view: Any) -> bool:
        return not settings.IZZY_THROTTLE or super().allow_request(request, view)


class ScopeThrottle(ScopedRateThrottle):
    """A view that names a `throttle_scope` is limited at that scope's rate too."""

    def allow_request(self, request: Request, view: Any) -> bool:
        return not settings.IZZY_THROTTLE or super().allow_request(request, view)
