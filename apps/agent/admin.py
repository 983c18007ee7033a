"""Model and tool calls in the admin. Inputs and results are not read for the lists."""

from django.contrib import admin

from apps.agent.models import ModelCall, ToolCall, ToolGrant
from apps.core.admin import ReadOnlyAdmin


@admin.register(ModelCall)
class ModelCallAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "user",
        "purpose",
        "model",
        "endpoint",
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cost_usd",
        "latency_ms",
        "stop_reason",
        "error_code",
    )
    list_filter = ("purpose", "endpoint", "model", "stop_reason", "error_code", "created_at")
    search_fields = ("=turn_id", "=conversation_id", "user__username", "model", "request_id")
    date_hierarchy = "created_at"


@admin.register(ToolCall)
class ToolCallAdmin(ReadOnlyAdmin):
    list_display = (
        "created_at",
        "user",
        "name",
        "state",
        "waits_for",
        "went_well",
        "error_code",
        "duration_ms",
    )
    list_filter = ("state", "name", "is_error", "error_code", "waits_for", "created_at")
    search_fields = ("=turn_id", "=conversation_id", "user__username", "name", "tool_use_id")
    date_hierarchy = "created_at"
    heavy_fields = ("input", "result", "answer")

    @admin.display(description="went well", boolean=True, ordering="is_error")
    def went_well(self, call: ToolCall) -> bool | None:
        return None if call.is_open else not call.is_error


@admin.register(ToolGrant)
class ToolGrantAdmin(ReadOnlyAdmin):
    list_display = ("created_at", "user", "reach", "conversation_id", "ends_at")
    search_fields = ("=conversation_id", "user__username")
    date_hierarchy = "created_at"
