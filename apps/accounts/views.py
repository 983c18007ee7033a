"""Pages of the accounts: the way in, one's own account, and the superuser's."""

from typing import Any

from django.contrib import messages
from django.contrib.auth import login, logout, update_session_auth_hash
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.forms import BaseForm
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.access import SignedInRequest, superuser_only
from apps.accounts.backends import attempt_begin, browser_remember
from apps.accounts.forms import (
    CurrentPasswordForm,
    InstanceForm,
    NewUserForm,
    PasswordForm,
    SetupForm,
    SignInForm,
    TokenForm,
)
from apps.accounts.models import User
from apps.accounts.preferences_form import PreferencesForm
from apps.accounts.secrets import from_environment, secret_get, secret_set
from apps.accounts.selectors import any_user_exists, preferences_for, tokens_kept
from apps.accounts.services import (
    notice_put,
    preferences_update,
    random_password,
    setup_complete,
    token_create,
    token_revoke,
    user_create,
    user_delete,
    user_set_active,
    user_set_password,
)
from apps.core.errors import IzzyError, NotFound
from apps.core.health import CheckResult, checks, run_check
from apps.core.http.clients import base_url_of, client_ip
from apps.core.http.htmx import is_fragment
from apps.core.ids import parse_id
from apps.core.registries import connection_tests

KEY, URL = "anthropic_api_key", "anthropic_base_url"


def _page(
    request: HttpRequest, tab: str, form: BaseForm, template: str = "", **context: object
) -> HttpResponse:
    """A tab of the settings; one whose form was refused is answered with 422."""
    context |= {"form": form, "nav": "settings", "tab": tab}
    status = 422 if form.is_bound else 200
    return render(request, f"accounts/{template or tab}.html", context, status=status)


class SignIn(LoginView):
    template_name = "accounts/sign_in.html"
    authentication_form = SignInForm
    redirect_authenticated_user = True

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """While nobody exists there is nobody to sign in: on to the set-up page."""
        if not any_user_exists():
            return redirect("accounts:setup")
        return super().get(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_valid(form)
        browser_remember(response, form.get_user())
        return response

    def form_invalid(self, form: SignInForm) -> HttpResponse:  # type: ignore[override]
        return render(self.request, self.template_name, self.get_context_data(form=form), status=422)


@login_not_required
@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def setup(request: HttpRequest) -> HttpResponse:
    """The first account. The token stands in the link's fragment, from where a script puts it into the form."""
    if any_user_exists():
        return redirect("accounts:sign_in")
    form = SetupForm(request.POST or None)
    if form.is_valid():
        try:
            attempt_begin(name="/setup/", address=client_ip(request))
            user = setup_complete(**form.cleaned_data)
        except IzzyError as error:
            form.add_failure(error)
        else:
            login(request, user)
            response = redirect("/")
            browser_remember(response, user)
            return response
    return render(request, "accounts/setup.html", {"form": form}, status=422 if form.is_bound else 200)


@require_http_methods(["GET", "POST"])
def settings_page(request: SignedInRequest) -> HttpResponse:
    form = PreferencesForm(request.POST or None, preferences=preferences_for(request.user.pk))
    if form.accepted(lambda: preferences_update(user_id=request.user.pk, **form.changes())):
        messages.success(request, "Your preferences are saved.")
        return redirect("accounts:settings")
    return _page(request, "preferences", form, "settings")


@require_POST
def put_away(request: SignedInRequest, name: str) -> HttpResponse:
    """Puts a notice away, or with `back` brings it back to where it stands."""
    back = "back" in request.POST
    try:
        notice_put(user_id=request.user.pk, name=name, away=not back)
    except NotFound as error:
        raise Http404(error.message) from error
    if is_fragment(request):
        return HttpResponse()
    return redirect("chat:home" if back or name == "first-steps" else "memory:list")


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def password(request: SignedInRequest) -> HttpResponse:
    """A new password; every other session of the user ends and, if they leave it at that, their API tokens with them."""
    form = PasswordForm(
        request.POST or None, request=request, tokens=tokens_kept(request.user.pk).count()
    )
    if form.accepted(
        lambda: user_set_password(
            user=request.user,
            password=form.cleaned_data["password"],
            revoke_tokens=form.cleaned_data.get("revoke_tokens", False),
        )
    ):
        update_session_auth_hash(request, request.user)
        gone = " Your API tokens are revoked." if form.made else ""
        messages.success(request, f"Your password is changed. Other browsers are signed out.{gone}")
        response = redirect("accounts:password")
        browser_remember(response, request.user)
        return response
    return _page(request, "password", form)


@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def delete(request: SignedInRequest) -> HttpResponse:
    """The account and all that belongs to it, at once and for good."""
    form = CurrentPasswordForm(request.POST or None, request=request)
    if form.accepted(lambda: user_delete(user=request.user)):
        logout(request)
        messages.success(request, "The account and everything that belonged to it is deleted.")
        return redirect("accounts:sign_in")
    return _page(request, "delete", form)


@never_cache
@require_http_methods(["GET", "POST"])
def tokens(request: SignedInRequest) -> HttpResponse:
    """The list of API tokens; a POST makes one and answers with its secret, which no later page can show."""
    form = TokenForm(request.POST or None, user=request.user)
    secret = ""
    if form.accepted(lambda: token_create(user=request.user, **form.values())):
        _, secret = form.made
        form = TokenForm(user=request.user)
    rows = tokens_kept(request.user.pk)
    address, now = base_url_of(request), timezone.now()
    return _page(request, "tokens", form, tokens=rows, secret=secret, now=now, address=address)


@require_POST
def revoke(request: SignedInRequest, pk: str) -> HttpResponse:
    try:
        token_revoke(user_id=request.user.pk, token_id=parse_id(pk))
    except NotFound as error:
        raise Http404 from error
    messages.success(request, "The token is revoked.")
    return redirect("accounts:tokens")


@never_cache
@require_http_methods(["GET", "POST"])
@superuser_only
def users(request: SignedInRequest) -> HttpResponse:
    """The list; a POST adds a user with a random password, shown once."""
    form = NewUserForm(request.POST or None)
    shown: dict[str, Any] = {}
    secret = random_password()

    def create() -> User:
        zone = preferences_for(request.user.pk).time_zone
        return user_create(password=secret, time_zone=zone, **form.cleaned_data)

    if form.accepted(create):
        shown = {"username": form.made.username, "password": secret}
        form = NewUserForm()
    return _users_page(request, form, shown)


@never_cache
@require_POST
@superuser_only
def reset_password(request: SignedInRequest, pk: str) -> HttpResponse:
    """A random password for the user, shown once; their sessions and API tokens end."""
    user = _user(pk)
    secret = random_password()
    revoked = user_set_password(user=user, password=secret, revoke_tokens=True)
    shown = {"username": user.username, "password": secret, "reset": True, "revoked": revoked}
    return _users_page(request, NewUserForm(), shown)


def _users_page(request: SignedInRequest, form: NewUserForm, shown: dict[str, Any]) -> HttpResponse:
    return _page(request, "users", form, users=User.objects.order_by("username"), shown=shown)


@require_POST
@superuser_only
def set_active(request: SignedInRequest, pk: str) -> HttpResponse:
    user, active = _user(pk), request.POST.get("active") == "yes"
    try:
        user_set_active(user=user, active=active)
    except IzzyError as error:
        messages.error(request, error.message)
    else:
        done = "may sign in again" if active else "is blocked: signed out everywhere, and kept out"
        messages.success(request, f"{user.username} {done}.")
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


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@superuser_only
def instance(request: SignedInRequest) -> HttpResponse:
    """The installation: the model's key and address, what works and what does not."""
    form = InstanceForm(request.POST or None, initial={URL: secret_get(URL)})
    if form.is_valid():
        given = {name: form.cleaned_data[name].strip() for name in (KEY, URL)}
        # An empty key leaves what is stored as it is.
        if not from_environment(KEY) and (form.cleaned_data["forget_key"] or given[KEY]):
            secret_set(name=KEY, value="" if form.cleaned_data["forget_key"] else given[KEY])
        if not from_environment(URL):
            secret_set(name=URL, value=given[URL])
        messages.success(request, "The settings of the instance are saved.")
        return redirect("accounts:instance")
    return _instance_page(request, form)


@never_cache
@require_POST
@superuser_only
def test_connection(request: SignedInRequest, name: str) -> HttpResponse:
    """Try a connection now and show what came of it: a fragment for HTMX, else the page."""
    if name not in connection_tests:
        raise Http404
    result = connection_tests[name]()
    if is_fragment(request):
        return render(request, "accounts/connection_result.html", {"result": result})
    return _instance_page(request, InstanceForm(initial={URL: secret_get(URL)}), name, result)


def _instance_page(
    request: SignedInRequest, form: InstanceForm, tested: str = "", result: CheckResult | None = None
) -> HttpResponse:
    for name in (KEY, URL):
        if from_environment(name):
            form.fields[name].disabled = True
            form.fields[name].help_text = "Set in the environment, which wins."
    return _page(
        request,
        "instance",
        form,
        key_stored=bool(secret_get(KEY)),
        key_from_environment=bool(from_environment(KEY)),
        connections=list(connection_tests),
        tested=tested,
        result=result,
        health=[(check, run_check(check)) for check in checks()],
    )
