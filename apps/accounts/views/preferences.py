"""One's own account: preferences, password, deletion."""

from django.contrib import messages
from django.contrib.auth import logout, update_session_auth_hash
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from apps.accounts.access import SignedInRequest
from apps.accounts.forms.account import CurrentPasswordForm, PasswordForm
from apps.accounts.forms.preferences import PreferencesForm
from apps.accounts.selectors import preferences_for, tokens_kept
from apps.accounts.services import preferences_update, user_delete, user_set_password
from apps.accounts.throttle import browser_remember
from apps.core.errors import IzzyError


@require_http_methods(["GET", "POST"])
def settings_page(request: SignedInRequest) -> HttpResponse:
    form = PreferencesForm(request.POST or None, preferences=preferences_for(request.user.pk))
    if form.is_valid():
        try:
            preferences_update(user_id=request.user.pk, **form.changes())
        except IzzyError as error:
            form.add_failure(error)
        else:
            messages.success(request, "Your preferences are saved.")
            return redirect("accounts:settings")
    context = {"form": form, "nav": "settings", "tab": "preferences"}
    return render(request, "accounts/settings.html", context, status=422 if form.is_bound else 200)


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def password(request: SignedInRequest) -> HttpResponse:
    """A new password; every other session of the user ends and, if they leave it at that, their API tokens with them."""
    tokens = tokens_kept(request.user.pk).count()
    form = PasswordForm(request.POST or None, request=request, tokens=tokens)
    if form.is_valid():
        try:
            revoked = user_set_password(
                user=request.user,
                password=form.cleaned_data["password"],
                revoke_tokens=form.cleaned_data.get("revoke_tokens", False),
            )
        except IzzyError as error:
            form.add_failure(error)
        else:
            update_session_auth_hash(request, request.user)
            gone = " Your API tokens are revoked." if revoked else ""
            messages.success(request, f"Your password is changed. Other browsers are signed out.{gone}")
            response = redirect("accounts:password")
            browser_remember(response, request.user)
            return response
    context = {"form": form, "nav": "settings", "tab": "password"}
    return render(request, "accounts/password.html", context, status=422 if form.is_bound else 200)


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def delete(request: SignedInRequest) -> HttpResponse:
    """The account and all that belongs to it, at once and for good."""
    form = CurrentPasswordForm(request.POST or None, request=request)
    if form.is_valid():
        user = request.user
        try:
            user_delete(user=user)
        except IzzyError as error:
            form.add_failure(error)
        else:
            logout(request)
            messages.success(request, "The account and everything that belonged to it is deleted.")
            return redirect("accounts:sign_in")
    context = {"form": form, "nav": "settings", "tab": "delete"}
    return render(request, "accounts/delete.html", context, status=422 if form.is_bound else 200)
