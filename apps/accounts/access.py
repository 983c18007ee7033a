"""Pages that only the superuser may see."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, cast

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse

from apps.accounts.models import User

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
