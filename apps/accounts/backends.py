"""The one way in with a password, wherever it is typed."""

from typing import Any

from django.contrib.auth.backends import ModelBackend
from django.http import HttpRequest

from apps.accounts.models import User
from apps.accounts.throttle import attempt_begin, attempt_succeeded, known_browser
from apps.core.http.clients import client_ip


class ThrottledBackend(ModelBackend):
    """Django's backend behind the sign-in throttle: raises Throttled where too many attempts failed."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        if username is None or password is None:
            return None
        address = client_ip(request) if request else ""
        browser = known_browser(request, username) if request else ""
        attempt_begin(name=username, address=address, browser=browser)
        user = super().authenticate(request, username=username, password=password, **kwargs)
        if user is not None:
            attempt_succeeded(name=username, address=address, browser=browser)
        return user
