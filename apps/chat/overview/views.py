"""The page about a conversation: its figures, its summary, the memories that came from it, and the model and instructions of its own."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.accounts.access import SignedInRequest
from apps.accounts.selectors import preferences_for
from apps.agent.model.client import model_for
from apps.agent.models import ToolCall
from apps.agent.tools.base import tool_title
from apps.chat.conversations.selectors import messages_counted
from apps.chat.conversations.services import conversation_change
from apps.chat.models import Conversation, Turn
from apps.chat.views import conversation_or_404
from apps.core.errors import IzzyError
from apps.memory.notes.with_conversation import notes_from

from .forms import OwnForm

NOTES_SHOWN = 12
TOOLS_SHOWN = 8


@require_http_methods(["GET", "POST"])
def about(request: SignedInRequest, conversation_id: str) -> HttpResponse:
    """The page; a POST gives the conversation its own model and instructions."""
    found, user_id = conversation_or_404(request, conversation_id), request.user.pk
    usual = preferences_for(user_id).model or model_for("chat")
    form = OwnForm(request.POST or None, conversation=found, usual=usual)
    if form.is_valid():
        try:
            conversation_change(user_id=user_id, conversation_id=found.pk, **form.changes())
        except IzzyError as error:
            form.add_failure(error)
        else:
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
