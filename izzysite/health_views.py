"""Probes for supervisors and load balancers; they need no sign-in and reveal nothing but names and states."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache

from apps.core.health import State, checks, recent_result


@login_not_required
@never_cache
def healthz(request: HttpRequest) -> JsonResponse:
    """The process answers."""
    return JsonResponse({"status": "ok"})


@login_not_required
@never_cache
def readyz(request: HttpRequest) -> JsonResponse:
    """Nothing essential is broken: 200, else 503. `checks` says of each part that it is not broken, `not_set_up` names
    those that are none the less not there."""
    results = [(check, recent_result(check).state) for check in checks()]
    ready = not any(check.essential and state == State.BROKEN for check, state in results)
    body = {
        "status": "ready" if ready else "unavailable",
        "checks": {check.name: state != State.BROKEN for check, state in results},
        "not_set_up": [check.name for check, state in results if state == State.NOT_SET_UP],
    }
    return JsonResponse(body, status=200 if ready else 503)
