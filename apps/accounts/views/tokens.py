"""API tokens: made, shown once, revoked."""

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.accounts.forms.account import TokenForm
from apps.accounts.selectors import tokens_kept
from apps.accounts.services import token_create, token_revoke
from apps.core.errors import IzzyError, NotFound
from apps.core.ids import parse_id


@never_cache
@require_http_methods(["GET", "POST"])
def tokens(request: SignedInRequest) -> HttpResponse:
    """The list; a POST makes one and answers with its secret, which no later page can show."""
    form = TokenForm(request.POST or None, user=request.user)
    secret = ""
    if form.is_valid():
        try:
            _, secret = token_create(user=request.user, **form.values())
        except IzzyError as error:
            form.add_failure(error)
        else:
            form = TokenForm(user=request.user)
    context = {
        "form": form,
        "tokens": tokens_kept(request.user.pk),
        "secret": secret,
        "now": timezone.now(),
        "nav": "settings",
        "tab": "tokens",
    }
    return render(request, "accounts/tokens.html", context, status=422 if form.is_bound else 200)


@require_POST
def revoke(request: SignedInRequest, pk: str) -> HttpResponse:
    try:
        token_revoke(user_id=request.user.pk, token_id=parse_id(pk))
    except NotFound as error:
        raise Http404 from error
    messages.success(request, "The token is revoked.")
    return redirect("accounts:tokens")
