"""Admin pages of the chat, for superusers."""

from django.contrib import admin

from apps.chat.models import Conversation, Message, Turn, TurnEvent
from apps.core.admin import ReadOnlyAdmin


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("title", "user", "channel", "use_memory", "updated_at")
    list_filter = ("channel", "use_memory", "updated_at")
    list_select_related = ("user",)
    search_fields = ("title", "session", "user__username")
    heavy_fields = ("summary", "tools")


@admin.register(Message)
class MessageAdmin(ReadOnlyAdmin):
    list_display = ("excerpt", "role", "kind", "conversation", "user", "created_at")
    list_filter = ("role", "kind", "indexed", "created_at")
    list_select_related = ("user", "conversation")
    search_fields = ("text", "external_id", "user__username")
    heavy_fields = ("blocks",)

    @admin.display(description="text")
    def excerpt(self, message: Message) -> str:
        return str(message) or f"({message.get_kind_display()})"


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    list_display = ("id", "state", "conversation", "user", "model", "error_code", "created_at", "ended_at")
    list_filter = ("state", "model", "created_at")
    list_select_related = ("user", "conversation")
    search_fields = ("id", "conversation__title", "error_code", "user__username")
    heavy_fields = ("memories", "waiting_for", "usage", "error_message")


@admin.register(TurnEvent)
class TurnEventAdmin(ReadOnlyAdmin):
    list_display = ("seq", "type", "turn", "conversation", "created_at")
    list_filter = ("type", "created_at")
    list_select_related = ("turn", "conversation")
    search_fields = ("turn__id", "conversation__title")
    heavy_fields = ("payload",)
