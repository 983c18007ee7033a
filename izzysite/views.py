"""Views of the site as a whole: its probes, the description of REST, and what the frame of every page shows."""

from typing import Any

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.utils.functional import SimpleLazyObject
from django.views.decorators.cache import never_cache
from drf_spectacular.renderers import OpenApiJsonRenderer
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

import izzysite.openapi  # noqa: F401  registers how to sign in
from apps.accounts.models import User
from apps.accounts.selectors import preferences_for
from apps.core.health import State, checks, recent_result
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
