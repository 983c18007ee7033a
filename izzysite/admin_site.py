"""The Django admin: for superusers alone, signed in through Izzy's own page; and its sidebar."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse, reverse_lazy
from django.utils.decorators import method_decorator
from unfold.sites import UnfoldAdminSite

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


GROUPS: dict[str, dict[str, str]] = {
    "People": {
        "accounts.user": "person",
        "accounts.preferences": "tune",
        "accounts.apitoken": "key",
        "accounts.secret": "lock",
    },
    "Memory": {
        "memory.memory": "bookmark",
        "memory.memoryfile": "description",
        "memory.purgereceipt": "receipt_long",
        "memory.import": "upload",
        "memory.capturewindow": "hearing",
    },
    "Conversations": {
        "chat.conversation": "chat",
        "chat.message": "notes",
        "agent.toolcall": "build",
        "agent.modelcall": "payments",
    },
    "Capabilities": {
        "capabilities.capability": "handyman",
        "capabilities.capabilityversion": "history",
        "capabilities.execution": "play_arrow",
        "builder.build": "construction",
    },
    "Programs": {
        "gateway.clientsession": "terminal",
        "gateway.waitingcall": "pan_tool",
        "gateway.proxyspending": "savings",
        "agent.toolgrant": "verified_user",
    },
    "Upkeep": {"core.integrityrun": "fact_check"},
}


def navigation(site: Any) -> list[dict[str, Any]]:
    """The sidebar of unfold: the groups, and in the last, folded one every other model of the site."""
    names = {model._meta.label_lower: str(model._meta.verbose_name_plural) for model in site._registry}
    known = {label for group in GROUPS.values() for label in group}
    internals = dict.fromkeys(sorted(names.keys() - known, key=names.__getitem__), "data_object")
    back = {
        "title": "Back to Izzy",
        "icon": "arrow_back",
        "link": reverse_lazy("chat:home"),
        "active": lambda request: False,  # every address begins with this one
    }
    index = {"title": "Overview", "icon": "dashboard", "link": reverse_lazy("admin:index")}
    return [
        {"items": [back, index]},
        *(
            {
                "title": title,
                "collapsible": title == "Internals",
                "items": [_item(label, icon, names) for label, icon in group.items() if label in names],
            }
            for title, group in (*GROUPS.items(), ("Internals", internals))
        ),
    ]


def _item(label: str, icon: str, names: dict[str, str]) -> dict[str, Any]:
    link = reverse_lazy(f"admin:{label.replace('.', '_')}_changelist")
    title = names[label]
    return {"title": title[:1].upper() + title[1:], "icon": icon, "link": link}
