"""The admin's view of all users' memories. Changes go through the services, so that search and history stay right."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from django.db.models.functions import Substr
from django.http import HttpRequest

from apps.core.admin import IzzyModelAdmin, ReadOnlyAdmin
from apps.core.errors import IzzyError
from apps.memory import services
from apps.memory.fields import clean_changes
from apps.memory.models import DecayCycle, Memory, MemoryEdge, MemoryRevision, Origin, Status
from apps.memory.services import Change

BY_ADMIN = Change(actor=Origin.USER, reason="in the admin")
EDITABLE = ("content", "tier", "kind", "importance", "tags", "category", "valid_from", "valid_to")
_EXCERPT_CHARS = 100


class MemoryAdminForm(forms.ModelForm[Memory]):
    """Checks what the service will check."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        try:
            clean_changes({name: cleaned[name] for name in EDITABLE if name in cleaned})
        except IzzyError as error:
            raise ValidationError(error.message) from error
        return cleaned


@admin.register(Memory)
class MemoryAdmin(IzzyModelAdmin):
    """All notes, deleted ones too. Deleting a note is what its owner could do; deleting it again erases it."""

    form = MemoryAdminForm
    fields = (*EDITABLE, "user", "status", "origin", "trust", "priority", "decay_rate", "superseded_by")
    readonly_fields = ("user", "status", "origin", "trust", "priority", "decay_rate", "superseded_by")
    list_display = ("excerpt", "user", "kind", "tier", "importance", "status", "origin", "created_at")
    list_filter = ("status", "kind", "tier", "origin", "trust", "importance", "created_at")
    list_select_related = ("user",)
    search_fields = ("content", "tags", "category", "user__username")
    date_hierarchy = "created_at"
    ordering = ("-created_at",)
    heavy_fields: ClassVar[tuple[str, ...]] = ("content",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        notes: QuerySet[Memory] = super().get_queryset(request)
        return notes.annotate(beginning=Substr("content", 1, _EXCERPT_CHARS))

    @admin.display(description="note")
    def excerpt(self, note: Memory) -> str:
        return str(vars(note)["beginning"])

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A deleted note can be looked at, and erased."""
        deleted = obj is not None and obj.status == Status.DELETED
        return not deleted and super().has_change_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Memory, form: forms.Form, change: bool) -> None:
        changes: Any = {name: form.cleaned_data[name] for name in form.changed_data}
        services.memory_update(user_id=obj.user_id, memory_id=obj.pk, change=BY_ADMIN, **changes)

    def delete_model(self, request: HttpRequest, obj: Memory) -> None:
        if obj.status == Status.DELETED:
            services.memories_erase(user_id=obj.user_id, memory_ids=[obj.pk])
        else:
            services.memory_delete(user_id=obj.user_id, memory_id=obj.pk, change=BY_ADMIN)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        for note in queryset:
            self.delete_model(request, note)


@admin.register(MemoryRevision)
class MemoryRevisionAdmin(ReadOnlyAdmin):
    list_display = ("memory_id", "version", "user", "action", "actor", "reason", "created_at")
    list_filter = ("action", "actor", "created_at")
    list_select_related = ("user",)
    search_fields = ("content", "user__username")
    ordering = ("-created_at",)
    heavy_fields: ClassVar[tuple[str, ...]] = ("content", "state")


@admin.register(MemoryEdge)
class MemoryEdgeAdmin(ReadOnlyAdmin):
    list_display = ("source_id", "relation", "target_id", "weight", "user", "created_at")
    list_filter = ("relation", "created_at")
    list_select_related = ("user",)
    search_fields = ("relation", "user__username")
    ordering = ("-created_at",)


@admin.register(DecayCycle)
class DecayCycleAdmin(ReadOnlyAdmin):
    list_display = ("user", "cycle")
    list_select_related = ("user",)
    search_fields = ("user__username",)
