"""The forms with which a user has something built; what they accept is decided by the services."""

from django import forms

from apps.accounts.forms.plain import PlainForm
from apps.builder.services.requesting import MAX_FEEDBACK_CHARS
from apps.capabilities.models import MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS


class NewBuildForm(PlainForm):
    """A new tool."""

    name = forms.CharField(
        label="Name",
        max_length=MAX_NAME_CHARS,
        help_text="Two or three words, such as tip calculator.",
        widget=forms.TextInput(
            attrs={"autocomplete": "off", "spellcheck": "false", "autocapitalize": "none"}
        ),
    )
    description = forms.CharField(
        label="What should it do?",
        max_length=MAX_DESCRIPTION_CHARS,
        help_text="What it takes, what it gives, and where from. An example helps.",
        widget=forms.Textarea(attrs={"rows": 4}),
    )

    def clean_name(self) -> str:
        """As tools are called: nobody has to know that Tip calculator is tip_calculator."""
        return "_".join(str(self.cleaned_data["name"]).lower().replace("-", " ").split())


class ChangeForm(PlainForm):
    """A new version of a tool."""

    feedback = forms.CharField(
        label="What should it do differently?",
        max_length=MAX_FEEDBACK_CHARS,
        help_text="For example: return Fahrenheit as well.",
        widget=forms.Textarea(attrs={"rows": 4}),
    )


class RepairForm(PlainForm):
    """A repair of a tool that failed."""

    feedback = forms.CharField(
        label="Anything that may help",
        max_length=MAX_FEEDBACK_CHARS,
        required=False,
        help_text="The builder gets the input and the error of the failed run.",
        widget=forms.Textarea(attrs={"rows": 3}),
    )
