"""The page about a conversation: its figures, its summary, the memories that came from it, and the model and instructions of its own."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from apps.accounts.access import SignedInRequest
from apps.accounts.choices import ANOTHER, offered
from apps.accounts.selectors import preferences_for
from apps.agent.model.client import model_for
from apps.agent.models import ToolCall
from apps.chat.conversations.selectors import messages_counted
from apps.chat.conversations.services import MAX_INSTRUCTIONS, MAX_MODEL, clean_own, conversation_change
from apps.chat.models import Conversation, Turn
from apps.chat.views import conversation_or_404
from apps.core.errors import IzzyError
from apps.memory.notes.with_conversation import notes_from

NOTES_SHOWN = 12
TOOLS_SHOWN = 8


@require_http_methods(["GET", "POST"])
def about(request: SignedInRequest, conversation_id: str) -> HttpResponse:
    """The page; a POST gives the conversation its own model and instructions."""
    found, user_id = conversation_or_404(request, conversation_id), request.user.pk
    given = {name: request.POST.get(name, getattr(found, name)) for name in ("model", "instructions")}
    other = request.POST.get("other_model", "").strip()
    problem: dict[str, str] = {}
    if request.method == "POST":
        given["instructions"] = given["instructions"].replace("\r\n", "\n")
        own = given | {"model": other if given["model"] == ANOTHER else given["model"]}
        for name, value in own.items():
            try:
                clean_own(name, value)
            except IzzyError as error:
                problem[name] = error.message
        if given["model"] == ANOTHER and not other:
            problem["model"] = "Give the name of the model."
        if "model" in problem:  # what was refused is there to be mended
            given["model"], other = ANOTHER, own["model"]
        if not problem:
            conversation_change(user_id=user_id, conversation_id=found.pk, **own)
            messages.success(request, "Saved. It holds from your next message here on.")
            return redirect("chat:conversation-about", conversation_id=found.pk)
    notes = notes_from(user_id, found.pk)
    count = notes.count()
    context: dict[str, Any] = {
        "nav": "chat",
        "conversation": found,
        "given": given | {"other_model": other},
        "another": ANOTHER,
        "problem": problem,
        "models": _models(found.model),
        "usual": preferences_for(user_id).model or model_for("chat"),
        "most": {"model": MAX_MODEL, "instructions": MAX_INSTRUCTIONS},
        "notes": notes[:NOTES_SHOWN],
        "count": count,
        "more": max(0, count - NOTES_SHOWN),
    }
    return render(
        request, "chat/about.html", context | _figures(user_id, found), status=422 if problem else 200
    )


def _models(own: str) -> list[tuple[str, str]]:
    """Choices of a model: those that are known, and the one it has, whatever it is."""
    known = [(value, label) for value, label in offered("models") if value]
    return known if own in {"", *dict(known)} else [*known, (own, own)]


def _figures(user_id: UUID, conversation: Conversation) -> dict[str, Any]:
    """How much was said, by which models it was answered, and which tools were used most."""
    turns = Turn.objects.owned_by(user_id).filter(conversation=conversation).exclude(model="")
    calls = ToolCall.objects.owned_by(user_id).filter(conversation_id=conversation.pk)
    return {
        "messages_said": messages_counted(user_id, [conversation.pk]).get(conversation.pk, 0),
        "answered_by": list(turns.order_by("model").values_list("model", flat=True).distinct()),
        "tools": calls.values("name").annotate(n=Count("id")).order_by("-n", "name")[:TOOLS_SHOWN],
    }
