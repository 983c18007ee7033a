"""Base of all forms."""

from typing import Any, ClassVar

from django import forms

from apps.core.errors import IzzyError

PASSWORD_LENGTH = 128


class PlainForm(forms.Form):
    """A form whose inputs carry the design system's classes. `field_of` names the field for a refusal's, where they differ."""

    field_of: ClassVar[dict[str, str]] = {}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("label_suffix", "")
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            if not isinstance(field.widget, forms.CheckboxInput | forms.CheckboxSelectMultiple):
                field.widget.attrs.setdefault("class", "input")

    def add_failure(self, error: IzzyError) -> None:
        """Show a service's refusal at the field it names, else above the form."""
        named = str(error.extra.get("field", ""))
        field = self.field_of.get(named, named)
        self.add_error(field if field in self.fields else None, error.message)


def password_field(label: str, *, new: bool = False, help_text: str = "") -> forms.CharField:
    widget = forms.PasswordInput(attrs={"autocomplete": "new-password" if new else "current-password"})
    return forms.CharField(
        label=label, max_length=PASSWORD_LENGTH, strip=False, widget=widget, help_text=help_text
    )


def username_field() -> forms.CharField:
    attrs = {"autocomplete": "username", "autocapitalize": "none", "autofocus": True, "spellcheck": "false"}
    return forms.CharField(label="User name", max_length=150, widget=forms.TextInput(attrs=attrs))
