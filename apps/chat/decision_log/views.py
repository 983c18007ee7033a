"""The page of a conversation's decision log, and its download."""

import json
from typing import Any, cast
from uuid import UUID

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.dateparse import parse_datetime
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from apps.chat.decision_log.cards import step_card
from apps.chat.decision_log.selectors import decision_log, log_turns, turns_begun
from apps.chat.models import Conversation
from apps.chat.selectors.conversations import conversation_get
from apps.core.errors import NotFound

PAGE_SIZE = 30


@never_cache
@require_GET
def log_page(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """The log, oldest turn first."""
    found = _found(request, conversation_id)
    page = Paginator(turns_begun(found), PAGE_SIZE).get_page(request.GET.get("page"))
    turns = [_shown(turn) for turn in log_turns(found, list(page))]
    places = {turn["turn"] for turn in turns}
    for turn in turns:
        turn["replaced_here"] = turn["replaced_by"] in places
    return render(
        request, "chat/log.html", {"conversation": found, "page": page, "turns": turns, "nav": "log"}
    )


@never_cache
@require_GET
def log_download(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """The whole log as a JSON file."""
    found = _found(request, conversation_id)
    body = json.dumps(decision_log(found), ensure_ascii=False, indent=2)
    response = HttpResponse(body, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="izzy-log-{found.id}.json"'
    return response


def _found(request: HttpRequest, conversation_id: str) -> Conversation:
    try:
        return conversation_get(cast("UUID", request.user.pk), conversation_id)
    except NotFound:
        raise Http404 from None


def _shown(turn: dict[str, Any]) -> dict[str, Any]:
    """The turn with times as values for the template, its steps opened up, and what it used in one number."""
    usage = turn["usage"]
    read = usage["input_tokens"] + usage["cache_read_tokens"] + usage["cache_write_tokens"]
    steps = [step | {"card": step_card(step)} for step in turn["steps"]]
    return turn | {"at": parse_datetime(turn["at"]), "steps": steps, "tokens_read": read}
