"""Views of the site as a whole: its probes, the description of REST, and what the frame of every page shows."""

from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.crypto import constant_time_compare
from django.utils.functional import SimpleLazyObject
from django.views.decorators.cache import never_cache
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

import izzysite.openapi  # noqa: F401  registers how to sign in
from apps.accounts.access import authenticate_bearer, require_scope
from apps.accounts.models import Scope, User
from apps.accounts.selectors import preferences_for
from apps.core.errors import Forbidden, IzzyError
from apps.core.health import State, checks, recent_result
from apps.core.metrics.exposition import metrics_text
from apps.memory.notes.review import waiting_count


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


@login_not_required
@never_cache
def metrics(request: HttpRequest) -> HttpResponse:
    """The figures for Prometheus. For `Authorization: Bearer` with IZZY_METRICS_TOKEN, or with an API token of scope admin of
    a superuser: 401 without, 403 for a token that may not."""
    header = request.headers.get("Authorization", "")
    given = header.partition(" ")[2].strip()
    wanted = settings.IZZY_METRICS_TOKEN
    if not wanted or not constant_time_compare(given, wanted):
        try:
            token = authenticate_bearer(header)
            require_scope(token, Scope.ADMIN)
            if not token.user.is_superuser:
                raise Forbidden("The figures are for superusers.")
        except IzzyError as error:
            headers = {"WWW-Authenticate": 'Bearer realm="izzy"'} if error.status == 401 else None
            return JsonResponse(error.to_json(), status=error.status, headers=headers)
    text, content_type = metrics_text()
    return HttpResponse(text, content_type=content_type)


class SchemaView(SpectacularAPIView):
    """The OpenAPI description of everything under /api/v1/, as JSON."""

    renderer_classes = [OpenApiJsonRenderer]


class SwaggerView(SpectacularSwaggerSplitView):
    """Swagger UI, with script and style in files of their own, as the Content-Security-Policy asks."""

    template_name = "api/docs.html"


def frame(request: HttpRequest) -> dict[str, Any]:
    """Context of every page: `preferences` of the signed-in user and `badges` (what waits for them, by page of the
    navigation). Neither costs a query unless shown."""
    user = getattr(request, "user", None)
    if not isinstance(user, User):
        return {"preferences": None, "badges": {}}
    return {
        "preferences": SimpleLazyObject(lambda: preferences_for(user.pk)),
        "badges": SimpleLazyObject(lambda: {"memory": waiting_count(user.pk)}),
    }
