"""The page of all capabilities, and that of the user's secrets."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.capabilities.catalog.matching import capabilities_matching
from apps.capabilities.catalog.secrets import user_secret_delete, user_secret_set
from apps.capabilities.catalog.selectors import (
    capabilities_for,
    retire_reason,
    secret_users,
    secrets_stored,
    versions_waiting,
)
from apps.capabilities.models import Capability, Status
from apps.capabilities.pages.forms import SecretForm
from apps.capabilities.pages.opened import own, percent, sandbox_problem, status_badge, waiting_badge
from apps.core.http.htmx import fills

PAGE_SIZE = 50
FOUND = 20
MAX_QUERY_CHARS = 500
NEAR = 0.05
"""Score from which a capability is shown for a search, below that for the assistant: people look for themselves."""


@require_GET
def capabilities(request: SignedInRequest) -> HttpResponse:
    """By name, or the best for what was searched; the list alone where htmx asks for it."""
    query = (
        request.GET.get("q", "")
        .replace("\x00", "")[:MAX_QUERY_CHARS]
        .encode("utf-8", "ignore")
        .decode()
        .strip()
    )
    status = request.GET.get("status", "")
    status = status if status in Status.values else ""
    rows: Any = capabilities_for(request.user.pk, status=status)
    shown = Paginator(_search(request, query, status) if query else rows, PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    waiting = versions_waiting(request.user.pk, list(shown))
    context = {
        "nav": "capabilities",
        "query": query,
        "status": status,
        "statuses": Status.choices,
        "page": shown,
        "rows": [
            {
                "capability": capability,
                "badge": status_badge(capability),
                "waiting": waiting_badge(waiting[capability.pk]) if capability.pk in waiting else None,
                "success": percent(capability),
                "retire": retire_reason(capability),
            }
            for capability in shown
        ],
        "sandbox_problem": sandbox_problem(),
        "any": bool(shown.paginator.count) or capabilities_for(request.user.pk).exists(),
    }
    partial = fills(request, "capability-list")
    return render(request, "capabilities/_list.html" if partial else "capabilities/list.html", context)


def _search(request: SignedInRequest, query: str, status: str) -> list[Capability]:
    """Those whose words occur, and the active ones that do what is asked, each once."""
    by_words = list(capabilities_for(request.user.pk, status=status, q=query)[:FOUND])
    hits = capabilities_matching(request.user.pk, query, top_k=FOUND)
    by_meaning = [
        found for hit, found in hits if hit.score >= NEAR and (not status or found.status == status)
    ]
    return list({row.pk: row for row in [*by_words, *by_meaning]}.values())


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "POST"])
def secrets(request: SignedInRequest) -> HttpResponse:
    """Their names and who asks for them; a POST keeps one."""
    initial = {
        "name": request.GET.get("name", "")[:64].encode("utf-8", "ignore").decode().replace("\x00", "")
    }
    form = SecretForm(request.POST or None, initial=initial)
    if form.accepted(lambda: user_secret_set(user_id=request.user.pk, **form.cleaned_data)):
        messages.success(request, f"{form.made} is kept.")
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
    user_secret_delete(user_id=request.user.pk, name=secret)
    messages.success(request, f"{secret} is deleted.")
    return redirect("capabilities:secrets")
