"""The way in: first-run set-up and sign-in."""

from typing import Any

from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from apps.accounts.forms.entrance import SetupForm, SignInForm
from apps.accounts.selectors import any_user_exists
from apps.accounts.setup import setup_complete
from apps.accounts.throttle import attempt_begin, browser_remember
from apps.core.errors import IzzyError
from apps.core.http.clients import client_ip


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
