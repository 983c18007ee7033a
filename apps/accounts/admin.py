"""Accounts in the admin. What is secret or hashed is never shown."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from apps.accounts.models import APIToken, Preferences, Secret, SignInAttempt, User
from apps.accounts.services import tokens_revoke, user_check_access, user_delete, users_check_going
from apps.core.admin import IzzyModelAdmin, ReadOnlyAdmin
from apps.core.errors import Conflict

admin.site.unregister(Group)


class ResetPasswordForm(AdminPasswordChangeForm):  # type: ignore[misc]  # unfold has no types
    """As on the page of users: API tokens end with the password."""

    @transaction.atomic
    def save(self, commit: bool = True) -> User:
        user: User = super().save(commit)
        tokens_revoke(user_id=user.pk)
        return user


class AccountForm(UserChangeForm):  # type: ignore[misc]  # unfold has no types
    """As on the page of users: the last superuser stays."""

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean()
        try:
            user_check_access(
                user=self.instance, active=given["is_active"], superuser=given["is_superuser"]
            )
        except Conflict as error:
            raise ValidationError(error.message) from error
        return given


@admin.register(User)
class AccountAdmin(UserAdmin, IzzyModelAdmin):  # type: ignore[type-arg, misc]  # generic only for the type checker
    form = AccountForm
    add_form = UserCreationForm
    change_password_form = ResetPasswordForm
    list_display = ("username", "is_active", "is_superuser", "last_login", "date_joined")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("username", "email")
    filter_horizontal = ()
    fieldsets = (
        (None, {"fields": ("username", "password", "email", "is_active", "is_superuser", "is_staff")}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        """As everywhere else: what other apps keep beside their rows goes too."""
        user_delete(user=obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[User]) -> None:
        for user in queryset.order_by("is_superuser"):  # who must stay while there are others goes last
            user_delete(user=user)

    def get_deleted_objects(
        self, objs: Sequence[User] | QuerySet[User], request: HttpRequest
    ) -> tuple[Any, ...]:
        """Where the last superuser is among those who would go, the page says that it must stay, and none goes."""
        *shown, protected = super().get_deleted_objects(objs, request)
        try:
            users_check_going(list(objs))
        except Conflict as error:
            protected = [*protected, error.message]
        return *shown, protected


@admin.register(Preferences)
class PreferencesAdmin(IzzyModelAdmin):
    list_display = ("user", "display_name", "language", "time_zone", "model", "use_memory")
    list_filter = ("use_memory", "language")
    search_fields = ("user__username", "display_name")
    heavy_fields = ("instructions",)


@admin.register(APIToken)
class APITokenAdmin(ReadOnlyAdmin):
    list_display = (
        "name",
        "user",
        "hint",
        "scopes",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_filter = ("revoked_at", "expires_at")
    search_fields = ("name", "user__username", "hint")
    exclude = ("digest",)


@admin.register(Secret)
class SecretAdmin(ReadOnlyAdmin):
    list_display = ("name", "user", "updated_at")
    search_fields = ("name", "user__username")
    exclude = ("ciphertext",)


@admin.register(SignInAttempt)
class SignInAttemptAdmin(ReadOnlyAdmin):
    list_display = ("at", "name_hash", "address_hash")
    date_hierarchy = "at"
    search_fields = ("name_hash", "address_hash")
