"""The settings page of a user's secrets."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.capabilities import services
from apps.capabilities.forms import SecretForm
from apps.capabilities.selectors import secret_users, secrets_stored
from apps.core.errors import IzzyError

from .shared import own


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def secrets(request: SignedInRequest) -> HttpResponse:
    """Their names and who asks for them; a POST keeps one."""
    initial = {
        "name": request.GET.get("name", "")[:64].encode("utf-8", "ignore").decode().replace("\x00", "")
    }
    form = SecretForm(request.POST or None, initial=initial)
    if form.is_valid():
        try:
            name = services.user_secret_set(user_id=request.user.pk, **form.cleaned_data)
        except IzzyError as error:
            form.add_failure(error)
        else:
            messages.success(request, f"{name} is kept.")
            return redirect("capabilities:secrets")
    users = secret_users(request.user.pk)
    stored = secrets_stored(request.user.pk)
    known = {row.name for row in stored}
    context = {
        "nav": "settings",
        "tab": "secrets",
        "form": form,
        "rows": [{"secret": row, "users": users.get(row.name, [])} for row in stored],
        "wanted": [
            {"name": name, "users": names} for name, names in sorted(users.items()) if name not in known
        ],
    }
    return render(request, "capabilities/secrets.html", context, status=422 if form.is_bound else 200)


@require_POST
@own
def forget(request: SignedInRequest, secret: str) -> HttpResponse:
    """Removes a secret."""
    services.user_secret_delete(user_id=request.user.pk, name=secret)
    messages.success(request, f"{secret} is deleted.")
    return redirect("capabilities:secrets")
