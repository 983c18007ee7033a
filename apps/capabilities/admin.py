"""The admin's view of all users' capabilities. Deleting goes through the services, so that files and search follow."""

from typing import ClassVar

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.capabilities.catalog.lifecycle import (
    capability_approve,
    capability_delete,
    capability_disable,
    version_delete,
)
from apps.capabilities.catalog.selectors import success_rate
from apps.capabilities.models import Capability, CapabilityVersion, Execution
from apps.capabilities.runs.examples import capability_retest
from apps.core.admin import OneByOneAdmin, ReadOnlyAdmin


@admin.register(Capability)
class CapabilityAdmin(OneByOneAdmin, ReadOnlyAdmin):
    """All capabilities, for reading, with actions to take them out of use and to delete them."""

    list_display = ("name", "user", "status", "current", "runs", "success", "last_run_at", "updated_at")
    list_filter = ("status", "updated_at", "last_run_at")
    search_fields = ("name", "description", "tags", "user__username")
    ordering = ("-updated_at",)
    heavy_fields: ClassVar[tuple[str, ...]] = ("input_schema", "output_schema")
    actions: ClassVar = ["approve", "disable", "retest"]

    @admin.display(description="success")
    def success(self, capability: Capability) -> str:
        rate = success_rate(capability)
        return "–" if rate is None else f"{rate:.0%}"

    @admin.action(description="Approve the current versions")
    def approve(self, request: HttpRequest, queryset: QuerySet[Capability]) -> None:
        self._each(
            request,
            queryset,
            "approved",
            lambda row: capability_approve(user_id=row.user_id, capability_id=row.pk),
        )

    @admin.action(description="Disable the selected capabilities")
    def disable(self, request: HttpRequest, queryset: QuerySet[Capability]) -> None:
        reason = "Disabled by the administrator."
        self._each(
            request,
            queryset,
            "disabled",
            lambda row: capability_disable(user_id=row.user_id, capability_id=row.pk, reason=reason),
        )

    @admin.action(description="Repeat their examples")
    def retest(self, request: HttpRequest, queryset: QuerySet[Capability]) -> None:
        def again(row: Capability) -> None:
            tested = async_to_sync(capability_retest)(user_id=row.user_id, name=row.name)
            for failure in tested.failures[:5]:
                self.message_user(request, f"{row.name}: {failure}", messages.ERROR)

        self._each(request, queryset, "tested", again)

    def delete_model(self, request: HttpRequest, obj: Capability) -> None:
        capability_delete(user_id=obj.user_id, capability_id=obj.pk)


@admin.register(CapabilityVersion)
class CapabilityVersionAdmin(OneByOneAdmin, ReadOnlyAdmin):
    """Versions, for reading; deleting one takes its files."""

    list_display = (
        "capability",
        "number",
        "user",
        "origin",
        "hosts",
        "secrets",
        "approved_at",
        "created_at",
    )
    list_filter = ("origin", "untrusted", ("approved_at", admin.EmptyFieldListFilter), "created_at")
    search_fields = ("capability__name", "description", "user__username")
    ordering = ("-created_at",)
    heavy_fields: ClassVar[tuple[str, ...]] = ("input_schema", "output_schema", "examples")

    def delete_model(self, request: HttpRequest, obj: CapabilityVersion) -> None:
        version_delete(user_id=obj.user_id, version_id=obj.pk)


@admin.register(Execution)
class ExecutionAdmin(ReadOnlyAdmin):
    list_display = (
        "capability",
        "version",
        "user",
        "state",
        "error_code",
        "trigger",
        "duration_ms",
        "created_at",
    )
    list_filter = ("state", "error_code", "trigger", "backend", "created_at")
    search_fields = ("capability__name", "user__username")
    ordering = ("-created_at",)
    heavy_fields: ClassVar[tuple[str, ...]] = ("input", "result", "stdout", "stderr", "error_message")
