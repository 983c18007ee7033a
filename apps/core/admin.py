"""The base of all apps' admin pages, and those of core."""

from typing import Any, ClassVar

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.db import models
from django.http import HttpRequest
from unfold.admin import ModelAdmin

from apps.core.models import InstanceState


class IzzyModelAdmin(ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """An admin page over the rows of all users. Columns named in `heavy_fields` (embeddings, long texts) are not read
    for the list; related rows are fetched with it."""

    heavy_fields: ClassVar[tuple[str, ...]] = ()
    list_per_page = 50
    show_full_result_count = False
    list_filter_submit = True
    compressed_fields = True

    def get_queryset(self, request: HttpRequest) -> models.QuerySet[Any]:
        rows: models.QuerySet[Any] = super().get_queryset(request)
        match = request.resolver_match
        in_list = match is not None and (match.url_name or "").endswith("_changelist")
        return rows.defer(*self.heavy_fields) if in_list and self.heavy_fields else rows

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """A date in the address that no calendar has leads back to the whole list, as other filters that do not fit."""
        try:
            return super().get_changelist_instance(request)
        except (ValueError, OverflowError) as error:
            raise IncorrectLookupParameters(error) from error


class ReadOnlyAdmin(IzzyModelAdmin):
    """Rows that only Izzy itself writes: they can be looked at and deleted."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        return False


@admin.register(InstanceState)
class InstanceStateAdmin(ReadOnlyAdmin):
    list_display = ("key", "updated_at")
    search_fields = ("key",)
