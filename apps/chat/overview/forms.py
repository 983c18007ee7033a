"""The form of what holds in one conversation alone."""

from typing import Any

from django import forms

from apps.accounts.model_form import ModelForm
from apps.chat.conversations.services import MAX_INSTRUCTIONS, MAX_MODEL, clean_own
from apps.chat.models import Conversation
from apps.core.http.forms import LinesField


class OwnForm(ModelForm):
    """A conversation's own model and instructions. Leaves alone what came back as it was shown."""

    model = forms.CharField(label="Model", max_length=MAX_MODEL, required=False, widget=forms.Select)
    instructions = LinesField(
        label="Instructions",
        required=False,
        widget=forms.Textarea(attrs={"rows": 5, "dir": "auto"}),
        help_text=f"What holds here beside your general instructions, up to {MAX_INSTRUCTIONS:,} characters.",
    )

    def __init__(self, *args: Any, conversation: Conversation, usual: str, **kwargs: Any) -> None:
        kwargs["initial"] = {name: getattr(conversation, name) for name in self.base_fields}
        super().__init__(*args, **kwargs)
        self.offer_models(own=conversation.model, without=f"As in your settings ({usual})")
        self.order_fields(["model", "other_model"])
        for name in self.base_fields:
            self.fields[name].show_hidden_initial = True

    def clean(self) -> dict[str, Any]:
        """Checks each field as a service would, so that an error stands at its field; a model's, where it was entered."""
        cleaned = super().clean()
        for name, field in (("model", "other_model"), ("instructions", "instructions")):
            if name in cleaned:
                self.check(field, clean_own, name, cleaned[name])
        return cleaned

    def changes(self) -> dict[str, Any]:
        """Input of `conversation_change`."""
        return {name: self.cleaned_data[name] for name in self.base_fields if not self.as_shown(name)}
