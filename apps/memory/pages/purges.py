"""The pages of a purge: what it will touch, the question, the receipt."""

from collections.abc import Sequence
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from apps.accounts.access import SignedInRequest
from apps.core.errors import Conflict
from apps.core.ids import parse_id
from apps.core.purging.remains import scrubbed_at
from apps.memory.models import Purged, PurgeReceipt
from apps.memory.purge import MAX_ALSO, MAX_REDACTED, memory_purge, purge_preview, receipt_get

from .done import own_note

PAGE_SIZE = 30


@require_http_methods(["GET", "POST"])
@own_note
def note(request: SignedInRequest, memory_id: UUID) -> HttpResponse:
    """Previews purging a note, with the messages and notes that say the same; a POST does it."""
    also = _chosen(request, "also", MAX_ALSO)
    return _answer(request, Purged.NOTE, [memory_id, *also], reverse("memory:list"))


@require_http_methods(["GET", "POST"])
@own_note
def file(request: SignedInRequest, file_id: UUID) -> HttpResponse:
    """The same for a file."""
    return _answer(request, Purged.FILE, [file_id], reverse("memory:files"))


def _answer(request: SignedInRequest, source: Purged, ids: Sequence[UUID], back: str) -> HttpResponse:
    user_id, problem = request.user.pk, ""
    redact = _chosen(request, "redact", MAX_REDACTED)
    if request.method == "POST":
        try:
            receipt = memory_purge(user_id=user_id, ids=ids, source=source, redact=redact)
            return redirect("memory:receipt", receipt_id=receipt.pk)
        except Conflict as error:
            problem = error.message
    preview = purge_preview(user_id, source, ids[0])
    context = {"preview": preview, "back": back, "problem": problem, "nav": "memory"}
    return render(request, "memory/purge/ask.html", context, status=409 if problem else 200)


def _chosen(request: SignedInRequest, name: str, limit: int) -> list[UUID]:
    """The ids that were chosen, as many as may be; NotFound for what is none."""
    return list(dict.fromkeys(map(parse_id, request.POST.getlist(name)[:limit])))


@require_GET
@own_note
def receipt(request: SignedInRequest, receipt_id: UUID) -> HttpResponse:
    """Shows the receipt of a purge."""
    found = receipt_get(request.user.pk, receipt_id)
    kept = [message for message in found.source_messages if not message["redacted"]]
    context = {
        "receipt": found,
        "touched": [place for place in found.places if place["found"]],
        "clean": [place for place in found.places if not place["found"]],
        "redacted": len(found.source_messages) - len(kept),
        "kept": kept,
        "off_disk": scrubbed_at(found.purged_at),
        "nav": "memory",
    }
    return render(request, "memory/purge/receipt.html", context)


@require_GET
def receipts(request: SignedInRequest) -> HttpResponse:
    """All receipts, newest first."""
    rows = PurgeReceipt.objects.for_user(request.user)
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "memory/purge/receipts.html", {"page": page, "nav": "memory"})
