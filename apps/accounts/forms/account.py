"""One's own password, tokens and the end of the account."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts.forms.plain import PlainForm, password_field
from apps.accounts.models import Scope, User
from apps.core.errors import Throttled


class CurrentPasswordForm(PlainForm):
    """Form that asks for the current password."""

    current = password_field("Your password, to confirm")

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean_current(self) -> str:
        """Looked at as on the sign-in page, throttle included: whoever finds a browser open guesses no faster here."""
        current = str(self.cleaned_data["current"])
        name = self.request.user.get_username()
        try:
            known = authenticate(self.request, username=name, password=current)
        except Throttled as error:
            raise forms.ValidationError(error.message, code=error.code) from error
        if known is None:
            raise forms.ValidationError("That is not your current password.")
        return current


class PasswordForm(CurrentPasswordForm):
    """A new password. Where there are API tokens it also asks what becomes of them."""

    current = password_field("Current password")
    password = password_field(
        "New password", new=True, help_text="At least eight characters, not a common word."
    )
    revoke_tokens = forms.BooleanField(
        label="Revoke my API tokens too",
        required=False,
        initial=True,
        help_text="Programs that use them lose access at once. Keep them only if nobody else can have seen them.",
    )

    def __init__(self, *args: Any, tokens: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not tokens:
            del self.fields["revoke_tokens"]


class TokenForm(PlainForm):
    LIFETIMES = [("", "Never"), ("7", "In a week"), ("30", "In 30 days"), ("365", "In a year")]

    name = forms.CharField(label="Name", max_length=80, help_text="What it is for, for example “laptop”.")
    scope = forms.ChoiceField(label="Access", choices=[])
    lifetime = forms.ChoiceField(label="Expires", choices=LIFETIMES, required=False)

    def __init__(self, *args: Any, user: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        scopes = [(str(Scope.READ), "Read"), (str(Scope.WRITE), "Read and write")]
        if user.is_superuser:
            scopes.append((str(Scope.ADMIN), "Everything, the instance included"))
        field = self.fields["scope"]
        assert isinstance(field, forms.ChoiceField)  # noqa: S101  for the type checker
        field.choices = scopes
        field.initial = str(Scope.WRITE)

    def values(self) -> dict[str, Any]:
        """Arguments of `token_create` but the user."""
        days = self.cleaned_data["lifetime"]
        expires_at = timezone.now() + timedelta(days=int(days)) if days else None
        return {
            "name": self.cleaned_data["name"],
            "scopes": [self.cleaned_data["scope"]],
            "expires_at": expires_at,
        }
