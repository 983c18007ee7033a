"""Set-up and sign-in."""

from typing import Any

from django import forms
from django.contrib.auth.forms import AuthenticationForm

from apps.accounts.forms.plain import PlainForm, password_field, username_field
from apps.core.errors import Throttled


class SignInForm(AuthenticationForm):
    """Django's form; too many attempts are told as what they are."""

    username = username_field()
    password = password_field("Password")
    error_messages = {
        "invalid_login": "User name or password is wrong. Mind capital and small letters.",
        "inactive": "This account is blocked.",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            field.widget.attrs["class"] = "input"
        if self.data.get("username"):
            self._expect_password()

    def _expect_password(self) -> None:
        """Puts the cursor and the error on the password, which most likely was refused."""
        self.fields["username"].widget.attrs.pop("autofocus", None)
        self.fields["password"].widget.attrs |= {"autofocus": True, "aria-describedby": "form-errors"}

    def clean(self) -> dict[str, Any]:
        try:
            return super().clean()
        except Throttled as error:
            raise forms.ValidationError(error.message, code=error.code) from error


class SetupForm(PlainForm):
    token = forms.CharField(
        label="Set-up code",
        max_length=200,
        help_text="The part after # of the link that Izzy printed when it started.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false", "data-setup-token": ""}),
    )
    username = username_field()
    password = password_field("Password", new=True, help_text="At least eight characters, not a common word.")
    time_zone = forms.CharField(
        max_length=64, required=False, widget=forms.HiddenInput(attrs={"data-time-zone": ""})
    )
