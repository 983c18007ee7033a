"""The Django admin: for superusers alone, signed in through Izzy's own page."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from unfold.sites import UnfoldAdminSite

from izzysite.admin_sidebar import navigation
from izzysite.errors import permission_denied


def navigation_of(request: HttpRequest) -> list[dict[str, Any]]:
    """The groups of the sidebar, by the name that unfold's settings give."""
    return navigation(admin.site)


class IzzyAdminSite(UnfoldAdminSite):  # type: ignore[misc]  # unfold has no types
    def has_permission(self, request: HttpRequest) -> bool:
        return request.user.is_active and request.user.is_superuser

    @method_decorator(login_not_required)
    def login(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        """Izzy's sign-in page, which is throttled; whoever is signed in without being superuser gets a 403."""
        if request.user.is_authenticated:
            if not self.has_permission(request):
                return permission_denied(request, PermissionDenied())
            return HttpResponseRedirect(reverse("admin:index"))
        target = request.GET.get("next") or reverse("admin:index")
        return HttpResponseRedirect(f"{reverse('accounts:sign_in')}?{urlencode({'next': target})}")

    def password_change(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        """Izzy's own page, where guesses at the present password are counted and API tokens can end with it."""
        return HttpResponseRedirect(reverse("accounts:password"))
