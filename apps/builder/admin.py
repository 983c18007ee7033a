"""The admin's view of all users' builds, for reading."""

from typing import ClassVar

from django.contrib import admin

from apps.builder.models import Build, BuilderMessage, DialogueMessage, Follower
from apps.core.admin import ReadOnlyAdmin


@admin.register(Build)
class BuildAdmin(ReadOnlyAdmin):
    list_display = ("name", "user", "kind", "state", "error_code", "version", "created_at", "ended_at")
    list_filter = ("state", "kind", "created_at")
    search_fields = ("name", "description", "reason", "user__username")
    ordering = ("-created_at",)
    heavy_fields: ClassVar[tuple[str, ...]] = ("input_schema",)


@admin.register(Follower)
class FollowerAdmin(ReadOnlyAdmin):
    list_display = ("build", "user", "conversation_id", "turn_id", "emitted", "has_news")
    list_filter = ("has_news",)
    search_fields = ("build__name", "user__username")


@admin.register(BuilderMessage)
class BuilderMessageAdmin(ReadOnlyAdmin):
    list_display = ("build", "user", "number", "direction", "type", "read", "created_at")
    list_filter = ("type", "direction", "created_at")
    search_fields = ("build__name", "user__username")
    ordering = ("-created_at",)


@admin.register(DialogueMessage)
class DialogueMessageAdmin(ReadOnlyAdmin):
    list_display = ("build", "user", "position", "role", "round", "stop_reason", "created_at")
    list_filter = ("role", "created_at")
    search_fields = ("build__name", "user__username")
    ordering = ("-created_at",)
    heavy_fields: ClassVar[tuple[str, ...]] = ("blocks",)
