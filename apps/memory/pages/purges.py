"""The pages of a purge: what it will touch, the question, the receipt."""

from collections.abc import Callable, Collection
from functools import partial
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from apps.accounts.access import SignedInRequest
from apps.core.errors import Conflict
from apps.core.ids import parse_id
from apps.memory.models import PurgeReceipt
from apps.memory.purge.selectors import (
    Preview,
    file_purge_preview,
    memory_purge_preview,
    off_disk_at,
    receipt_get,
)
from apps.memory.purge.services import MAX_ALSO, MAX_REDACTED, file_purge, memory_purge

from .done import own_note

PAGE_SIZE = 30


@require_http_methods(["GET", "POST"])
@own_note
def note(request: SignedInRequest, memory_id: str) -> HttpResponse:
    """Previews purging a note, with the messages and notes that say the same; a POST does it."""
    key = parse_id(memory_id)
    redact, also = _ticked(request.POST, "redact"), _ticked(request.POST, "also")
    purge = partial(memory_purge, memory_id=key, redact=redact, also=also)
    return _answer(request, purge, partial(memory_purge_preview, memory_id=key), reverse("memory:list"))


@require_http_methods(["GET", "POST"])
@own_note
def file(request: SignedInRequest, file_id: str) -> HttpResponse:
    """The same for a file."""
    key = parse_id(file_id)
    purge = partial(file_purge, file_id=key, redact=_ticked(request.POST, "redact"))
    return _answer(request, purge, partial(file_purge_preview, file_id=key), reverse("memory:files"))


def _answer(
    request: SignedInRequest, purge: Callable[..., PurgeReceipt], preview: Callable[..., Preview], back: str
) -> HttpResponse:
    problem = ""
    if request.method == "POST":
        try:
            return redirect("memory:receipt", receipt_id=purge(user_id=request.user.pk).pk)
        except Conflict as error:
            problem = error.message
    context = {"preview": preview(request.user.pk), "back": back, "problem": problem, "nav": "memory"}
    return render(request, "memory/purge/ask.html", context, status=409 if problem else 200)


def _ticked(data: QueryDict, name: str) -> list[UUID]:
    """The ids of the ticked boxes; NotFound for what is none."""
    limit = MAX_ALSO if name == "also" else MAX_REDACTED
    values: Collection[str] = data.getlist(name)[:limit]
    return list(dict.fromkeys(parse_id(value) for value in values))


@require_GET
@own_note
def receipt(request: SignedInRequest, receipt_id: str) -> HttpResponse:
    """Shows the receipt of a purge."""
    found = receipt_get(request.user.pk, parse_id(receipt_id))
    context = {
        "receipt": found,
        "touched": [place for place in found.places if place["found"]],
        "clean": [place for place in found.places if not place["found"]],
        "redacted": sum(1 for message in found.source_messages if message["redacted"]),
        "kept": [message for message in found.source_messages if not message["redacted"]],
        "off_disk": off_disk_at(found),
        "nav": "memory",
    }
    return render(request, "memory/purge/receipt.html", context)


@require_GET
def receipts(request: SignedInRequest) -> HttpResponse:
    """All receipts, newest first."""
    rows = PurgeReceipt.objects.for_user(request.user)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "memory/purge/receipts.html", {"page": page, "nav": "memory"})
