"""The admin of receipts of purges."""

from django.contrib import admin

from apps.core.admin import ReadOnlyAdmin
from apps.memory.models import PurgeReceipt


@admin.register(PurgeReceipt)
class PurgeReceiptAdmin(ReadOnlyAdmin):
    list_display = ("started_at", "user", "source", "state", "by_sweep", "purged_at")
    list_filter = ("source", "state", "by_sweep")
    list_select_related = ("user",)
    search_fields = ("user__username", "id")
