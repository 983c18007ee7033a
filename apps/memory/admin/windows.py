"""The admin's view of the windows: what waits to be read, what came of each, and why one failed. For reading alone."""

from typing import ClassVar

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.core.admin import ReadOnlyAdmin
from apps.memory.capture.services import windows_retry
from apps.memory.models import CaptureLease, CaptureWindow


@admin.register(CaptureWindow)
class CaptureWindowAdmin(ReadOnlyAdmin):
    """Windows of all users. Those that were given up can be tried again."""

    list_display = (
        "created_at",
        "user",
        "state",
        "gate",
        "tokens",
        "added",
        "merged",
        "superseded",
        "pending",
        "injected_again",
        "error_code",
        "due_at",
    )
    list_filter = ("state", "gate", "error_code", "created_at")
    list_select_related = ("user",)
    search_fields = ("user__username", "error", "error_code")
    ordering = ("-created_at",)
    heavy_fields: ClassVar[tuple[str, ...]] = ("segments", "shown", "message_ids", "memory_ids", "dropped")
    actions = ("try_again",)

    @admin.action(description="Try again what was given up", permissions=["delete"])
    def try_again(self, request: HttpRequest, queryset: QuerySet[CaptureWindow]) -> None:
        users = set(queryset.values_list("user_id", flat=True))
        count = sum(windows_retry(user_id=user_id) for user_id in users)
        self.message_user(request, f"{count} windows are tried again.", messages.SUCCESS)


@admin.register(CaptureLease)
class CaptureLeaseAdmin(ReadOnlyAdmin):
    list_display = ("user", "holder", "until")
    list_select_related = ("user",)
    search_fields = ("user__username", "holder")
