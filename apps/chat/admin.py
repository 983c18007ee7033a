"""Admin pages of the chat, for superusers."""

from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest

from apps.chat.attachments.services import attachments_remove
from apps.chat.conversations.services import conversation_delete
from apps.chat.models import Attachment, Conversation, Folder, Message, Turn, TurnEvent
from apps.core.admin import ReadOnlyAdmin
from apps.search.documents import Source
from apps.search.services import documents_remove


@admin.register(Folder)
class FolderAdmin(ReadOnlyAdmin):
    list_display = ("name", "user", "opened", "created_at")
    search_fields = ("name", "user__username")


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    list_display = ("title", "user", "channel", "folder", "use_memory", "archived", "updated_at")
    list_filter = ("channel", "use_memory", "pinned", "archived", "updated_at")
    search_fields = ("title", "session", "user__username")
    heavy_fields = ("summary", "tools")

    def delete_model(self, request: HttpRequest, obj: Conversation) -> None:
        """As everywhere else: what search and the tools keep of it goes too."""
        conversation_delete(user_id=obj.user_id, conversation_id=obj.pk)

    def delete_chosen(self, request: HttpRequest, rows: QuerySet[Conversation]) -> None:
        for row in rows.filter(deleted_at=None):
            self.delete_model(request, row)


class WithMessagesAdmin(ReadOnlyAdmin):
    """Rows that take messages with them, which then leave search too."""

    def messages(self, rows: QuerySet[Any]) -> QuerySet[Message]:
        """The messages that go with these rows."""
        raise NotImplementedError

    def delete_model(self, request: HttpRequest, obj: Model) -> None:
        self.delete_chosen(request, self.model._base_manager.filter(pk=obj.pk))

    @transaction.atomic
    def delete_chosen(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        by_user: dict[UUID, list[UUID]] = {}
        for user_id, message_id in self.messages(rows).values_list("user_id", "id"):
            by_user.setdefault(user_id, []).append(message_id)
        for user_id, said in by_user.items():
            documents_remove(user_id=user_id, source=Source.CONVERSATION, source_ids=said)
        rows.delete()


@admin.register(Attachment)
class AttachmentAdmin(ReadOnlyAdmin):
    list_display = ("name", "kind", "size", "pages", "conversation", "user", "created_at")
    list_filter = ("kind", "created_at")
    search_fields = ("name", "user__username")
    heavy_fields = ("text",)

    def delete_model(self, request: HttpRequest, obj: Attachment) -> None:
        """With its file."""
        self.delete_chosen(request, Attachment.objects.for_user(obj.user_id).filter(pk=obj.pk))

    @transaction.atomic
    def delete_chosen(self, request: HttpRequest, rows: QuerySet[Attachment]) -> None:
        for user_id in set(rows.order_by().values_list("user_id", flat=True)):
            attachments_remove(user_id, rows.filter(user_id=user_id))


@admin.register(Message)
class MessageAdmin(WithMessagesAdmin):
    list_display = ("excerpt", "role", "kind", "conversation", "user", "created_at")
    list_filter = ("role", "kind", "indexed", "created_at")
    search_fields = ("text", "external_id", "user__username")
    heavy_fields = ("blocks",)

    def messages(self, rows: QuerySet[Any]) -> QuerySet[Message]:
        return rows

    @admin.display(description="text")
    def excerpt(self, message: Message) -> str:
        return str(message) or f"({message.get_kind_display()})"


@admin.register(Turn)
class TurnAdmin(WithMessagesAdmin):
    list_display = (
        "id",
        "state",
        "conversation",
        "user",
        "model",
        "error_code",
        "created_at",
        "ended_at",
    )
    list_filter = ("state", "model", "created_at")
    search_fields = ("id", "conversation__title", "error_code", "user__username")
    heavy_fields = ("memories", "waiting_for", "usage", "error_message")

    def messages(self, rows: QuerySet[Any]) -> QuerySet[Message]:
        return Message.objects.unscoped().filter(Q(turn__in=rows) | Q(superseded_by__in=rows))


@admin.register(TurnEvent)
class TurnEventAdmin(ReadOnlyAdmin):
    list_display = ("seq", "type", "turn", "conversation", "created_at")
    list_filter = ("type", "created_at")
    search_fields = ("turn__id", "conversation__title")
    heavy_fields = ("payload",)
