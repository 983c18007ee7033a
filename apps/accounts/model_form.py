"""The choice of a model, as every form has it: one that is known, or another by its name."""

from typing import Any

from django import forms

from apps.accounts.choices import ANOTHER, offered
from apps.core.http.forms import PlainForm


class ModelForm(PlainForm):
    """A form with the field `model`; whoever makes it calls `offer_models`. A list of models is a help, not a limit:
    servers of one's own have models of their own, which are entered in `other_model`."""

    model = forms.CharField(label="Model", max_length=120, required=False, widget=forms.Select)

    def offer_models(self, *, own: str, without: str) -> None:
        """The choices: `without` a model of one's own, those that are known, `own` whatever it is, and another."""
        known = [(value, label) for value, label in offered("models") if value]
        if own not in {"", *dict(known)}:
            known.append((own, own))
        self.fields["model"].widget = forms.Select(
            attrs={"class": "input own-model"},
            choices=[("", without), *known, (ANOTHER, "Another…")],
        )
        self.fields["other_model"] = forms.CharField(
            label="Its name",
            max_length=self.fields["model"].max_length,  # type: ignore[attr-defined]  # a CharField
            required=False,
            help_text="As the server of the models calls it.",
            widget=forms.TextInput(
                attrs={"class": "input", "autocomplete": "off", "spellcheck": "false"}
            ),
        )

    def clean(self) -> dict[str, Any]:
        """`model` is the name that was entered, where another was chosen."""
        cleaned = super().clean() or self.cleaned_data
        if cleaned.get("model") == ANOTHER and "other_model" in cleaned:
            cleaned["model"] = cleaned["other_model"].strip()
            if not cleaned["model"]:
                self.add_error("other_model", "Give the name of the model.")
        return cleaned
