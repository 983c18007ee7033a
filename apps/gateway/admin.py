"""Admin pages of the gateway, for superusers."""

from django.contrib import admin

from apps.core.admin import ReadOnlyAdmin
from apps.gateway.models import ClientSession, ProxySpending, ProxyTurn, WaitingCall


@admin.register(ClientSession)
class ClientSessionAdmin(ReadOnlyAdmin):
    list_display = ("client", "surface", "user", "tainted", "updated_at")
    list_filter = ("surface", "tainted", "updated_at")
    search_fields = ("key", "user__username")
    heavy_fields = ("shown", "prompts")


@admin.register(WaitingCall)
class WaitingCallAdmin(ReadOnlyAdmin):
    list_display = ("tool", "client", "user", "decision", "created_at")
    list_filter = ("decision", "created_at")
    search_fields = ("tool", "user__username")
    heavy_fields = ("input", "reach")


@admin.register(ProxyTurn)
class ProxyTurnAdmin(ReadOnlyAdmin):
    list_display = ("session", "user", "position", "created_at")
    list_filter = ("created_at",)
    search_fields = ("user__username",)
    heavy_fields = ("block", "shown")


@admin.register(ProxySpending)
class ProxySpendingAdmin(ReadOnlyAdmin):
    list_display = ("token", "user", "day", "tokens")
    list_filter = ("day",)
    search_fields = ("user__username", "token__name")
