"""The base of all apps' admin pages, and those of core."""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import unquote
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.db import models
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import path, reverse
from unfold.admin import ModelAdmin
from unfold.decorators import display

from apps.core.db.writing import users_of, writing_for
from apps.core.errors import IzzyError
from apps.core.ids import parse_id
from apps.core.integrity.requests import integrity_run_request
from apps.core.models import InstanceState, IntegrityRun


class IzzyModelAdmin(ModelAdmin):  # type: ignore[misc]  # unfold has no types
    """An admin page over the rows of all users. Columns named in `heavy_fields` (embeddings, long texts) are not read
    for the list; related rows are fetched with it. What a page changes or deletes it writes for the row's owner."""

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

    def get_list_select_related(self, request: HttpRequest) -> list[str]:
        """The relations among the columns."""
        relations = {field.name for field in self.model._meta.fields if field.is_relation}
        return [column for column in self.list_display if column in relations]

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, *args: Any, **more: Any
    ) -> Any:
        with writing_for(self._owner(object_id)):
            return super().changeform_view(request, object_id, *args, **more)

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any, **more: Any) -> Any:
        with writing_for(self._owner(object_id)):
            return super().delete_view(request, object_id, *args, **more)

    def delete_queryset(self, request: HttpRequest, queryset: models.QuerySet[Any]) -> None:
        """Deletes what was chosen, user by user."""
        if self._owner_field() is None:
            super().delete_queryset(request, queryset)
            return
        for _, own in users_of(queryset):
            self.delete_chosen(request, own)

    def delete_chosen(self, request: HttpRequest, rows: models.QuerySet[Any]) -> None:
        """Deletes chosen rows of one user."""
        super().delete_queryset(request, rows)

    def _owner_field(self) -> str | None:
        names = {field.attname for field in self.model._meta.concrete_fields}
        return "user_id" if "user_id" in names else None

    def _owner(self, object_id: str | None) -> UUID | None:
        """Returns the row's user; None for nobody's, and for an id that is none."""
        field = self._owner_field()
        if field is None or object_id is None:
            return None
        with suppress(ValueError, ValidationError):
            rows = self.model._base_manager.filter(pk=unquote(object_id))
            owner: UUID | None = rows.values_list(field, flat=True).first()
            return owner
        return None

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


class OneByOneAdmin(IzzyModelAdmin):
    """Rows of users that services change and delete, one at a time."""

    def delete_chosen(self, request: HttpRequest, rows: models.QuerySet[Any]) -> None:
        for row in rows:
            self.delete_model(request, row)

    def _each(
        self, request: HttpRequest, rows: models.QuerySet[Any], done: str, act: Callable[[Any], object]
    ) -> None:
        """Does it to each row for its owner; says how many, and why not the others. Rows have `pk` and `user_id` at hand."""
        count = 0
        for row in rows.select_related(None).only("pk", "user_id"):
            try:
                with writing_for(row.user_id):
                    act(row)
            except IzzyError as error:
                self.message_user(request, error.message, messages.ERROR)
            else:
                count += 1
        self.message_user(request, f"{count} {done}.", messages.SUCCESS if count else messages.WARNING)


@admin.register(InstanceState)
class InstanceStateAdmin(ReadOnlyAdmin):
    list_display = ("key", "updated_at")
    search_fields = ("key",)


@admin.register(IntegrityRun)
class IntegrityRunAdmin(ReadOnlyAdmin):
    """Asks the worker whether rows, files and the search index fit each other, and shows what it found."""

    list_display = ("created_at", "asked_by", "request_in_words", "standing", "found", "left", "took")
    heavy_fields = ("findings",)
    fields = ("created_at", "asked_by", "request_in_words", "state", "took", "found", "left")
    list_before_template = "core/integrity_ask.html"
    change_form_before_template = "core/integrity_findings.html"

    @display(  # type: ignore[untyped-decorator]
        description="state",
        label={"done": "success", "running": "info", "waiting": "info", "failed": "danger"},
    )
    def standing(self, run: IntegrityRun) -> tuple[str, str]:
        return run.state, str(run.get_state_display())

    @admin.display(description="asked to")
    def request_in_words(self, run: IntegrityRun) -> str:
        return "look and repair" if run.fix else "look"

    @admin.display(description="took")
    def took(self, run: IntegrityRun) -> str:
        return f"{(run.ended_at - run.created_at).total_seconds():.0f} s" if run.ended_at else "–"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return self.fields

    def get_urls(self) -> list[Any]:
        ask = path("ask/", self.admin_site.admin_view(self.ask), name="core_integrityrun_ask")
        return [ask, *super().get_urls()]

    def ask(self, request: HttpRequest) -> HttpResponse:
        """The form's POST: has the worker look, or look and repair."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        run = integrity_run_request(asked_by=request.user.get_username(), fix="fix" in request.POST)
        messages.success(request, "The worker does it now. Open it to see what it finds.")
        return HttpResponseRedirect(reverse("admin:core_integrityrun_change", args=[run.pk]))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        run = IntegrityRun.objects.filter(pk=object_id).first() if parse_id(object_id) else None
        context = {"run": run, "findings": _findings(run)} if run else {}
        response: HttpResponse = super().change_view(
            request, object_id, form_url, (extra_context or {}) | context
        )
        return response


def _findings(run: IntegrityRun) -> list[dict[str, Any]]:
    """The findings with the names of their users."""
    users = {each["user"] for each in run.findings if each["user"]}
    people = get_user_model()._base_manager.in_bulk(list(users))
    names = {str(key): user.get_username() for key, user in people.items()}
    return [each | {"username": names.get(each["user"], "")} for each in run.findings]
