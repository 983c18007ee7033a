"""Probes for supervisors and load balancers; they need no sign-in and reveal nothing but names and states."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from apps.core.health import checks, recent_result


@login_not_required
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@login_not_required
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """What is essential works: 200, else 503. `checks` gives each check's outcome."""
    results = [(check, recent_result(check).ok) for check in checks()]
    ready = all(ok for check, ok in results if check.essential)
    body = {
        "status": "ready" if ready else "unavailable",
        "checks": {check.name: ok for check, ok in results},
    }
    return JsonResponse(body, status=200 if ready else 503)
