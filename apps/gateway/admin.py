"""Admin pages of the gateway, for superusers."""

from django.contrib import admin

from apps.core.admin import ReadOnlyAdmin
from apps.gateway.models import ClientSession


@admin.register(ClientSession)
class ClientSessionAdmin(ReadOnlyAdmin):
    list_display = ("client", "surface", "user", "tainted", "updated_at")
    list_filter = ("surface", "tainted", "updated_at")
    list_select_related = ("user",)
    search_fields = ("key", "user__username")
    heavy_fields = ("shown", "prompts")
