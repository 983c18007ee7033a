"""The Content-Security-Policy of every answer."""

from collections.abc import Mapping, Sequence

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin


def policy_text(policy: Mapping[str, Sequence[str]]) -> str:
    return "; ".join(f"{directive} {' '.join(sources)}" for directive, sources in policy.items())


class ContentSecurityPolicyMiddleware(MiddlewareMixin):
    """IZZY_CSP everywhere; under /admin/ IZZY_CSP_ADMIN, since unfold evaluates strings and styles inline."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        admin = request.path.startswith("/admin/")
        policy = settings.IZZY_CSP_ADMIN if admin else settings.IZZY_CSP
        response.headers.setdefault("Content-Security-Policy", policy_text(policy))
        return response
