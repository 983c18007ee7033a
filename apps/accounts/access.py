"""Access to pages: all ask for sign-in unless their view says `login_not_required`, some for the superuser."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast

from django.contrib.auth.middleware import LoginRequiredMiddleware
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.selectors import user_time_zone
from apps.core.errors import NotAuthenticated

P = ParamSpec("P")


class SignedInRequest(HttpRequest):
    """A request that passed SignInRequiredMiddleware."""

    user: User


def superuser_only(
    view: Callable[Concatenate[SignedInRequest, P], HttpResponse],
) -> Callable[Concatenate[SignedInRequest, P], HttpResponse]:
    @wraps(view)
    def guarded(request: SignedInRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not request.user.is_superuser:
            raise PermissionDenied
        return view(request, *args, **kwargs)

    return cast("Callable[Concatenate[SignedInRequest, P], HttpResponse]", guarded)


class SignInRequiredMiddleware(LoginRequiredMiddleware):
    """A page redirects to sign-in, an HTMX fragment has the page go there, /api/ answers 401 as JSON.

    No cache keeps what is behind the sign-in: whoever goes back after a sign-out sees nothing of it. Pages show times in the
    time zone of the signed-in user; the REST interface stays with UTC.
    """

    def process_view(
        self, request: HttpRequest, view_func: Any, view_args: Any, view_kwargs: Any
    ) -> Any:
        if isinstance(request.user, User) and not request.path.startswith("/api/"):
            timezone.activate(user_time_zone(request.user.pk))
        return super().process_view(request, view_func, view_args, view_kwargs)

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        response.headers.setdefault("Cache-Control", "private, no-store")
        timezone.deactivate()
        return response

    def handle_no_permission(  # type: ignore[override]  # Django's only redirects
        self, request: HttpRequest, view_func: Any
    ) -> HttpResponseBase:
        if request.path.startswith("/api/"):
            error = NotAuthenticated()
            return JsonResponse(error.to_json(), status=error.status)
        if request.headers.get("HX-Request"):
            return HttpResponse(status=401, headers={"HX-Redirect": reverse("accounts:sign_in")})
        return super().handle_no_permission(request, view_func)
