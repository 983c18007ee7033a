"""The admin's view of all users' files. Deleting goes through the services, so that search and history stay right."""

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from apps.core.admin import ReadOnlyAdmin
from apps.memory.models import MemoryFile, MemoryFileRevision, Origin
from apps.memory.services import Change
from apps.memory.services.file_history import file_erase
from apps.memory.services.files import file_delete

BY_ADMIN = Change(actor=Origin.USER, reason="in the admin")


@admin.register(MemoryFile)
class MemoryFileAdmin(ReadOnlyAdmin):
    """All files, deleted ones too, for reading. Deleting one is what its owner could do; deleting it again erases it."""

    fields = ("user", "path", "content", "size", "origin", "created_at", "updated_at", "deleted_at")
    list_display = ("path", "user", "size", "origin", "updated_at", "deleted_at")
    list_filter = ("origin", "updated_at", ("deleted_at", admin.EmptyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("path", "content", "user__username")
    ordering = ("-updated_at",)
    heavy_fields: ClassVar[tuple[str, ...]] = ("content",)

    def delete_model(self, request: HttpRequest, obj: MemoryFile) -> None:
        if obj.deleted_at is not None:
            file_erase(user_id=obj.user_id, file_id=obj.pk)
        else:
            file_delete(user_id=obj.user_id, path=obj.path, change=BY_ADMIN)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for file in queryset:
            self.delete_model(request, file)


@admin.register(MemoryFileRevision)
class MemoryFileRevisionAdmin(ReadOnlyAdmin):
    list_display = ("path", "version", "user", "action", "actor", "reason", "created_at")
    list_filter = ("action", "actor", "created_at")
    list_select_related = ("user",)
    search_fields = ("path", "content", "user__username")
    ordering = ("-created_at",)
    heavy_fields: ClassVar[tuple[str, ...]] = ("content",)
