"""The superuser's page of users: adding, resetting a password, keeping out, deleting."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.access import SignedInRequest, superuser_only
from apps.accounts.forms.instance import NewUserForm
from apps.accounts.models import User
from apps.accounts.selectors import preferences_for
from apps.accounts.services import (
    random_password,
    user_create,
    user_delete,
    user_set_active,
    user_set_password,
)
from apps.core.errors import IzzyError, NotFound
from apps.core.ids import parse_id


@never_cache
@require_http_methods(["GET", "POST"])
@superuser_only
def users(request: SignedInRequest) -> HttpResponse:
    """The list; a POST adds a user with a random password, shown once."""
    form = NewUserForm(request.POST or None)
    shown: dict[str, Any] = {}
    if form.is_valid():
        secret = random_password()
        try:
            zone = preferences_for(request.user.pk).time_zone
            user = user_create(password=secret, time_zone=zone, **form.cleaned_data)
        except IzzyError as error:
            form.add_failure(error)
        else:
            shown = {"username": user.username, "password": secret}
            form = NewUserForm()
    return _page(request, form, shown)


@never_cache
@require_POST
@superuser_only
def reset_password(request: SignedInRequest, pk: str) -> HttpResponse:
    """A random password for the user, shown once; their sessions and API tokens end."""
    user = _user(pk)
    secret = random_password()
    revoked = user_set_password(user=user, password=secret, revoke_tokens=True)
    return _page(
        request,
        NewUserForm(),
        {"username": user.username, "password": secret, "reset": True, "revoked": revoked},
    )


@require_POST
@superuser_only
def set_active(request: SignedInRequest, pk: str) -> HttpResponse:
    user = _user(pk)
    try:
        user_set_active(user=user, active=request.POST.get("active") == "yes")
    except IzzyError as error:
        messages.error(request, error.message)
    return redirect("accounts:users")


@require_POST
@superuser_only
def delete_user(request: SignedInRequest, pk: str) -> HttpResponse:
    user = _user(pk)
    if user == request.user:
        messages.error(request, "Your own account is deleted on its own page.")
        return redirect("accounts:delete")
    try:
        user_delete(user=user)
    except IzzyError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"{user.username} and everything of theirs is deleted.")
    return redirect("accounts:users")


def _user(pk: str) -> User:
    try:
        return User.objects.get(pk=parse_id(pk))
    except (NotFound, User.DoesNotExist) as error:
        raise Http404 from error


def _page(request: SignedInRequest, form: NewUserForm, shown: dict[str, Any]) -> HttpResponse:
    rows = User.objects.order_by("username")
    context = {"form": form, "users": rows, "shown": shown, "nav": "settings", "tab": "users"}
    return render(request, "accounts/users.html", context, status=422 if form.is_bound else 200)
