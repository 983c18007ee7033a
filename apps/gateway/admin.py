"""Admin pages of the gateway, for superusers."""

from django.contrib import admin

from apps.core.admin import ReadOnlyAdmin
from apps.gateway.models import ClientSession, WaitingCall


@admin.register(ClientSession)
class ClientSessionAdmin(ReadOnlyAdmin):
    list_display = ("client", "surface", "user", "tainted", "updated_at")
    list_filter = ("surface", "tainted", "updated_at")
    list_select_related = ("user",)
    search_fields = ("key", "user__username")
    heavy_fields = ("shown", "prompts")


@admin.register(WaitingCall)
class WaitingCallAdmin(ReadOnlyAdmin):
    list_display = ("tool", "client", "user", "decision", "created_at")
    list_filter = ("decision", "created_at")
    list_select_related = ("user",)
    search_fields = ("tool", "user__username")
    heavy_fields = ("input", "reach")
