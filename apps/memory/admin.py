"""The admin's view of all users' notes, files, windows and receipts. Changes go through the services, so that search and history stay right."""

import json
from contextlib import suppress
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Substr
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from unfold.decorators import display
from unfold.widgets import UnfoldAdminTextInputWidget

from apps.core.admin import OneByOneAdmin, ReadOnlyAdmin
from apps.core.db.writing import users_of
from apps.core.errors import IzzyError
from apps.core.http.forms import LinesField, in_list, listed
from apps.core.text import truncated

from .capture.windows import windows_retry
from .files.services import file_delete, file_erase
from .models import (
    CaptureLease,
    CaptureWindow,
    DecayCycle,
    Import,
    Memory,
    MemoryEdge,
    MemoryFile,
    MemoryFileRevision,
    MemoryRevision,
    MemorySummary,
    MemoryUse,
    NoteHandle,
    Origin,
    PurgeReceipt,
    Status,
    Trust,
)
from .notes.changes import memories_erase, memory_archive, memory_delete, memory_update
from .notes.creation import notes_reindex
from .notes.fields import clean_changes
from .notes.review import review_accept
from .notes.revisions import Change
from .purge import memory_purge

BY_ADMIN = Change(actor=Origin.USER, trust=Trust.USER, reason="in the admin")
EDITABLE = (
    *("content", "tier", "kind", "importance", "tags", "category", "occasions"),
    *("valid_from", "valid_to"),
)
BETWEEN_COMMAS = "Between commas; what has a comma in it, in quotes."
_EXCERPT_CHARS = 100


class WordsField(forms.CharField):
    """A list of words or phrases, between commas; a list in JSON is taken as well."""

    def prepare_value(self, value: Any) -> Any:
        return in_list(map(str, value)) if isinstance(value, list) else value

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if text.startswith("["):
            with suppress(ValueError):
                return json.loads(text)
        return listed(text)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(self.clean(data) != (initial or []))


class MemoryAdminForm(forms.ModelForm):  # type: ignore[type-arg]  # generic for the type checker alone
    """Checks what the service will check."""

    tags = WordsField(required=False, widget=UnfoldAdminTextInputWidget, help_text=BETWEEN_COMMAS)
    occasions = WordsField(required=False, widget=UnfoldAdminTextInputWidget, help_text=BETWEEN_COMMAS)

    class Meta:
        field_classes: ClassVar = {"content": LinesField}

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        for name in ("tags", "occasions"):
            if name not in self.changed_data:
                cleaned.pop(name, None)
        try:
            clean_changes({name: cleaned[name] for name in EDITABLE if name in cleaned})
        except IzzyError as error:
            raise ValidationError(error.message) from error
        return cleaned


@admin.register(Memory)
class MemoryAdmin(OneByOneAdmin):
    """All notes, deleted ones too. Deleting a note is what its owner could do; deleting it again erases it."""

    form = MemoryAdminForm
    readonly_fields = (
        *("occasions_by", "user", "status", "origin", "trust"),
        *("priority", "decay_rate", "superseded_by"),
    )
    fields = (*EDITABLE, *readonly_fields)
    list_display = (
        "excerpt",
        "user",
        "labels",
        "kind",
        "tier",
        "importance",
        "status",
        "origin",
        "created_at",
    )
    list_filter = (
        *("status", "kind", "tier", "origin", "trust"),
        *("importance", "occasions_by", "created_at"),
    )
    search_fields = ("content", "tags", "category", "user__username")
    date_hierarchy = "created_at"
    ordering = ("-created_at",)
    heavy_fields = ("content",)
    actions = ("approve", "archive", "embed_again", "purge")

    @display(description="tags", label=True)  # type: ignore[untyped-decorator]
    def labels(self, note: Memory) -> list[str]:
        return [str(tag) for tag in note.tags]

    @admin.action(description="Approve what waits for review", permissions=["change"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        waiting = queryset.filter(status=Status.PENDING)
        self._each(
            request,
            waiting,
            "approved",
            lambda note: review_accept(user_id=note.user_id, memory_id=note.pk, change=BY_ADMIN),
        )

    @admin.action(description="Archive", permissions=["change"])
    def archive(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        rows = queryset.filter(status=Status.ACTIVE)
        self._each(
            request,
            rows,
            "archived",
            lambda note: memory_archive(user_id=note.user_id, memory_id=note.pk, change=BY_ADMIN),
        )

    @admin.action(description="Embed again", permissions=["change"])
    def embed_again(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        @transaction.atomic
        def again(note: Memory) -> None:
            notes_reindex(note.user_id, [Memory.objects.with_deleted(note.user_id).get(pk=note.pk)])

        self._each(request, queryset, "embedded again", again)

    @admin.action(description="Purge, with a receipt", permissions=["delete"])
    def purge(self, request: HttpRequest, queryset: QuerySet[Memory]) -> None:
        def purged(note: Memory) -> None:
            receipt = memory_purge(user_id=note.user_id, ids=[note.pk])
            url = reverse("admin:memory_purgereceipt_change", args=[receipt.pk])
            self.message_user(
                request, format_html('Purged: <a href="{}">the receipt</a>.', url), messages.SUCCESS
            )

        self._each(request, queryset, "purged", purged)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Memory]:
        notes: QuerySet[Memory] = super().get_queryset(request)
        return notes.annotate(beginning=Substr("content", 1, _EXCERPT_CHARS + 1))

    @admin.display(description="memory")
    def excerpt(self, note: Memory) -> str:
        return truncated(str(vars(note)["beginning"]), _EXCERPT_CHARS)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """A deleted note can be looked at, and erased."""
        deleted = obj is not None and obj.status == Status.DELETED
        return not deleted and super().has_change_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Memory, form: forms.Form, change: bool) -> None:
        changes: Any = {name: form.cleaned_data[name] for name in form.changed_data}
        memory_update(user_id=obj.user_id, memory_id=obj.pk, change=BY_ADMIN, **changes)

    def delete_model(self, request: HttpRequest, obj: Memory) -> None:
        if obj.status == Status.DELETED:
            memories_erase(user_id=obj.user_id, memory_ids=[obj.pk])
        else:
            memory_delete(user_id=obj.user_id, memory_id=obj.pk, change=BY_ADMIN)


@admin.register(MemoryRevision)
class MemoryRevisionAdmin(ReadOnlyAdmin):
    list_display = ("memory_id", "version", "user", "action", "actor", "reason", "created_at")
    list_filter = ("action", "actor", "created_at")
    search_fields = ("content", "user__username")
    ordering = ("-created_at",)
    heavy_fields = ("content", "state")


@admin.register(MemoryEdge)
class MemoryEdgeAdmin(ReadOnlyAdmin):
    list_display = ("source_id", "relation", "target_id", "weight", "user", "created_at")
    list_filter = ("relation", "created_at")
    search_fields = ("relation", "user__username")
    ordering = ("-created_at",)


@admin.register(MemoryUse)
class MemoryUseAdmin(ReadOnlyAdmin):
    list_display = ("memory_id", "user", "used_in", "question", "created_at")
    list_filter = ("used_in", "created_at")
    search_fields = ("user__username",)
    ordering = ("-created_at",)
    heavy_fields = ("reason",)


@admin.register(NoteHandle)
class NoteHandleAdmin(ReadOnlyAdmin):
    list_display = ("__str__", "memory_id", "user")
    search_fields = ("conversation_id", "user__username")
    ordering = ("-pk",)


@admin.register(MemorySummary)
class MemorySummaryAdmin(ReadOnlyAdmin):
    list_display = ("user", "made_at", "due_at")
    search_fields = ("user__username",)
    heavy_fields = ("figures", "tags", "categories")


@admin.register(DecayCycle)
class DecayCycleAdmin(ReadOnlyAdmin):
    list_display = ("user", "cycle")
    search_fields = ("user__username",)


@admin.register(MemoryFile)
class MemoryFileAdmin(OneByOneAdmin, ReadOnlyAdmin):
    """All files, deleted ones too, for reading. Deleting one is what its owner could do; deleting it again erases it."""

    fields = ("user", "path", "content", "size", "origin", "created_at", "updated_at", "deleted_at")
    list_display = ("path", "user", "size", "origin", "updated_at", "deleted_at")
    list_filter = ("origin", "updated_at", ("deleted_at", admin.EmptyFieldListFilter))
    search_fields = ("path", "content", "user__username")
    ordering = ("-updated_at",)
    heavy_fields = ("content",)

    def delete_model(self, request: HttpRequest, obj: MemoryFile) -> None:
        if obj.deleted_at is not None:
            file_erase(user_id=obj.user_id, file_id=obj.pk)
        else:
            file_delete(user_id=obj.user_id, path=obj.path, change=BY_ADMIN)


@admin.register(MemoryFileRevision)
class MemoryFileRevisionAdmin(ReadOnlyAdmin):
    list_display = ("path", "version", "user", "action", "actor", "reason", "created_at")
    list_filter = ("action", "actor", "created_at")
    search_fields = ("path", "content", "user__username")
    ordering = ("-created_at",)
    heavy_fields = ("content",)


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
    search_fields = ("user__username", "error", "error_code")
    ordering = ("-created_at",)
    heavy_fields = ("segments", "shown", "message_ids", "memory_ids", "dropped")
    actions = ("try_again",)

    @admin.action(description="Try again what was given up", permissions=["delete"])
    def try_again(self, request: HttpRequest, queryset: QuerySet[CaptureWindow]) -> None:
        count = sum(windows_retry(user_id=user_id) for user_id, _ in users_of(queryset))
        self.message_user(request, f"{count} windows are tried again.", messages.SUCCESS)


@admin.register(CaptureLease)
class CaptureLeaseAdmin(ReadOnlyAdmin):
    list_display = ("user", "runner", "lease_until")
    search_fields = ("user__username", "runner")


@admin.register(PurgeReceipt)
class PurgeReceiptAdmin(ReadOnlyAdmin):
    list_display = ("started_at", "user", "source", "state", "by_sweep", "purged_at")
    list_filter = ("source", "state", "by_sweep")
    search_fields = ("user__username", "id")


@admin.register(Import)
class ImportAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "user",
        "reader",
        "state",
        "size",
        "dry_run",
        "own",
        "accept",
        "ended_at",
    )
    list_filter = ("state", "reader", "dry_run", "own", "accept")
    search_fields = ("user__username", "id")
    heavy_fields = ("cursor", "report")
