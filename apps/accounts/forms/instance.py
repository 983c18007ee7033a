"""The superuser's forms: users and the instance."""

from django import forms
from django.core.validators import RegexValidator, URLValidator

from apps.accounts.forms.plain import PlainForm, username_field


class NewUserForm(PlainForm):
    username = username_field()
    superuser = forms.BooleanField(
        label="Superuser", required=False, help_text="May manage users, the instance and the admin."
    )


class InstanceForm(PlainForm):
    anthropic_api_key = forms.CharField(
        label="Anthropic API key",
        required=False,
        max_length=500,
        widget=forms.PasswordInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        validators=[RegexValidator(r"\A[!-~]+\Z", "A key has letters, digits and signs only, no spaces.")],
        help_text="Empty: leave what is stored as it is.",
    )
    forget_key = forms.BooleanField(label="Remove the stored key", required=False)
    anthropic_base_url = forms.CharField(
        label="Base URL",
        required=False,
        max_length=500,
        validators=[URLValidator(schemes=["http", "https"])],
        help_text="Any server that speaks the Messages API. Empty: Anthropic's own.",
    )
