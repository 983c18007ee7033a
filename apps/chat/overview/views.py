"""The page about a conversation: its figures, its summary, the memories that came from it, and the model and instructions of its own."""

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.accounts.access import SignedInRequest
from apps.accounts.forms import ModelForm
from apps.accounts.selectors import preferences_for
from apps.agent.model.client import model_for
from apps.agent.models import ToolCall
from apps.agent.tools.base import tool_title
from apps.chat.conversations.selectors import messages_counted
from apps.chat.conversations.services import MAX_INSTRUCTIONS, MAX_MODEL, clean_own, conversation_change
from apps.chat.models import Conversation, Turn
from apps.chat.views import conversation_or_404
from apps.core.http.forms import LinesField
from apps.memory.notes.with_conversation import notes_from


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


NOTES_SHOWN = 12
TOOLS_SHOWN = 8


@require_http_methods(["GET", "POST"])
def about(request: SignedInRequest, conversation_id: str) -> HttpResponse:
    """The page; a POST gives the conversation its own model and instructions."""
    found, user_id = conversation_or_404(request, conversation_id), request.user.pk
    usual = preferences_for(user_id).model or model_for("chat")
    form = OwnForm(request.POST or None, conversation=found, usual=usual)
    if form.accepted(
        lambda: conversation_change(user_id=user_id, conversation_id=found.pk, **form.changes())
    ):
        messages.success(request, "Saved. It holds from your next message here on.")
        return redirect("chat:conversation-about", conversation_id=found.pk)
    notes = notes_from(user_id, found.pk)
    count = notes.count()
    context: dict[str, Any] = {
        "nav": "chat",
        "conversation": found,
        "form": form,
        "notes": notes[:NOTES_SHOWN],
        "count": count,
        "more": max(0, count - NOTES_SHOWN),
    }
    status = 422 if form.is_bound else 200
    return render(request, "chat/about.html", context | _figures(user_id, found), status=status)


def _figures(user_id: UUID, conversation: Conversation) -> dict[str, Any]:
    """How much was said, by which models it was answered, and which tools were used most."""
    turns = Turn.objects.owned_by(user_id).filter(conversation=conversation).exclude(model="")
    calls = ToolCall.objects.owned_by(user_id).filter(conversation_id=conversation.pk)
    used = calls.values_list("name").annotate(n=Count("id")).order_by("-n", "name")[:TOOLS_SHOWN]
    return {
        "messages_said": messages_counted(user_id, [conversation.pk]).get(conversation.pk, 0),
        "answered_by": list(turns.order_by("model").values_list("model", flat=True).distinct()),
        "tools": [(tool_title(name), number) for name, number in used],
    }
