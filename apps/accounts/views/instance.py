"""The superuser's page of the installation: the model's key and address, what works and what does not."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.access import SignedInRequest, superuser_only
from apps.accounts.forms.instance import InstanceForm
from apps.accounts.secrets import from_environment, secret_get, secret_set
from apps.core.health import CheckResult, checks, run_check
from apps.core.registries import connection_tests

KEY, URL = "anthropic_api_key", "anthropic_base_url"


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
@superuser_only
def instance(request: SignedInRequest) -> HttpResponse:
    form = InstanceForm(request.POST or None, initial={URL: secret_get(URL)})
    if form.is_valid():
        _save(form)
        messages.success(request, "The settings of the instance are saved.")
        return redirect("accounts:instance")
    return _page(request, form, status=422 if form.is_bound else 200)


@never_cache
@require_POST
@superuser_only
def test_connection(request: SignedInRequest, name: str) -> HttpResponse:
    """Try a connection now and show what came of it: a fragment for HTMX, else the page."""
    if name not in connection_tests:
        raise Http404
    result = connection_tests[name]()
    if request.headers.get("HX-Request"):
        return render(request, "accounts/connection_result.html", {"result": result})
    return _page(request, InstanceForm(initial={URL: secret_get(URL)}), tested=name, result=result)


def _save(form: InstanceForm) -> None:
    if not from_environment(KEY):
        if form.cleaned_data["forget_key"]:
            secret_set(name=KEY, value="")
        elif value := form.cleaned_data[KEY].strip():
            secret_set(name=KEY, value=value)
    if not from_environment(URL):
        secret_set(name=URL, value=form.cleaned_data[URL].strip())


def _page(
    request: SignedInRequest,
    form: InstanceForm,
    *,
    tested: str = "",
    result: CheckResult | None = None,
    status: int = 200,
) -> HttpResponse:
    for name in (KEY, URL):
        if from_environment(name):
            form.fields[name].disabled = True
            form.fields[name].help_text = "Set in the environment, which wins."
    context = {
        "form": form,
        "key_stored": bool(secret_get(KEY)),
        "key_from_environment": bool(from_environment(KEY)),
        "connections": [name for name, _ in connection_tests],
        "tested": tested,
        "result": result,
        "health": [(check, run_check(check)) for check in checks()],
        "nav": "settings",
        "tab": "instance",
    }
    return render(request, "accounts/instance.html", context, status=status)
