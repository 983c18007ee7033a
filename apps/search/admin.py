"""The admin's view of the index. Read-only: passages follow from what they were made of."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.db.models.functions import Substr
from django.http import HttpRequest

from apps.core.admin import ReadOnlyAdmin
from apps.core.text import truncated
from apps.search.documents import Source
from apps.search.models import EmbeddingSpace, IndexOwner, Passage, Tombstone
from apps.search.services import documents_remove, user_forget

EXCERPT_CHARS = 100


@admin.register(Passage)
class PassageAdmin(ReadOnlyAdmin):
    list_display = ("id", "user", "source", "excerpt", "speaker", "happened_at", "facet")
    list_filter = ("source", "facet")
    search_fields = ("text", "external_id")
    exclude = ("features", "vector", "side_vector")
    ordering = ("-id",)
    heavy_fields = ("features", "vector", "side_vector", "text", "terms")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Passage]:
        rows: QuerySet[Passage] = super().get_queryset(request)
        return rows.annotate(beginning=Substr("text", 1, EXCERPT_CHARS + 1))

    def delete_model(self, request: HttpRequest, obj: Passage) -> None:
        """Takes the whole document out of search; what it was made of stays."""
        documents_remove(user_id=obj.user_id, source=Source(obj.source), source_ids=[obj.source_id])

    def delete_chosen(self, request: HttpRequest, rows: QuerySet[Passage]) -> None:
        for passage in rows.only("user_id", "source", "source_id"):
            self.delete_model(request, passage)

    @admin.display(description="text")
    def excerpt(self, passage: Any) -> str:
        return truncated(str(passage.beginning), EXCERPT_CHARS)


@admin.register(EmbeddingSpace)
class EmbeddingSpaceAdmin(ReadOnlyAdmin):
    list_display = ("name", "role", "dimension", "noise", "match", "created_at")
    search_fields = ("name",)

    def has_delete_permission(self, request: HttpRequest, obj: EmbeddingSpace | None = None) -> bool:
        return False


@admin.register(IndexOwner)
class IndexOwnerAdmin(ReadOnlyAdmin):
    """Deleting an owner takes everything of the user out of search."""

    list_display = ("number", "user", "change", "tombstones_from")
    search_fields = ("user__username",)

    def delete_model(self, request: HttpRequest, obj: IndexOwner) -> None:
        user_forget(user_id=obj.user_id)

    def delete_chosen(self, request: HttpRequest, rows: QuerySet[IndexOwner]) -> None:
        for owner in rows:
            self.delete_model(request, owner)


@admin.register(Tombstone)
class TombstoneAdmin(ReadOnlyAdmin):
    list_display = ("passage_id", "user", "change", "created_at")
    list_filter = ("created_at",)
    search_fields = ("passage_id",)
