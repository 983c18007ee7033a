"""Where a request comes from."""

from django.conf import settings
from django.http import HttpRequest


def client_ip(request: HttpRequest) -> str:
    """The peer's address; behind a proxy (IZZY_BEHIND_PROXY) the last one X-Forwarded-For names, which is the
    one the proxy itself saw. Entries before it are the client's own words."""
    if settings.IZZY_BEHIND_PROXY:
        forwarded = request.headers.get("X-Forwarded-For", "").rpartition(",")[2].strip()
        if forwarded:
            return forwarded
    return str(request.META.get("REMOTE_ADDR") or "")
