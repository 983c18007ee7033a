"""The Django admin: for superusers alone, signed in through Izzy's own page."""

from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseForbidden, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from unfold.sites import UnfoldAdminSite


class IzzyAdminSite(UnfoldAdminSite):  # type: ignore[misc]  # unfold has no types
    def has_permission(self, request: HttpRequest) -> bool:
        return request.user.is_active and request.user.is_superuser

    def login(self, request: HttpRequest, extra_context: dict[str, object] | None = None) -> HttpResponse:
        """Izzy's sign-in page, which is throttled; whoever is signed in without being superuser gets a 403."""
        if request.user.is_authenticated:
            if not self.has_permission(request):
                return HttpResponseForbidden(render(request, "403.html").content)
            return HttpResponseRedirect(reverse("admin:index"))
        target = request.GET.get("next") or reverse("admin:index")
        return HttpResponseRedirect(f"{reverse('accounts:sign_in')}?{urlencode({'next': target})}")
