"""What is done to the notes that were ticked on the memories page."""

from collections.abc import Callable
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import IzzyError, NotFound
from apps.core.ids import parse_id
from apps.memory.services.ticked import memories_archive, memories_delete, memories_tag

DONE: dict[str, tuple[Callable[..., int], str]] = {
    "archive": (memories_archive, "{} put away. They are listed under “Archived”."),
    "delete": (memories_delete, "{} deleted. They can be brought back for 30 days."),
    "tag": (memories_tag, "{} tagged “{tag}”."),
}


@require_POST
def ticked(request: SignedInRequest) -> HttpResponse:
    """`do` is one of `DONE`, or `merge`, which leads to the form for it; back to the list, which says what was done."""
    wanted, given = request.POST.get("do", ""), request.POST.getlist("notes")
    if wanted == "merge":
        return redirect(f"{reverse('memory:merge')}?{urlencode([('notes', key) for key in given])}")
    try:
        said = _done(request, wanted, given)
    except NotFound:
        messages.error(request, "Nothing was changed: one of these memories is no longer there.")
    except IzzyError as error:
        messages.error(request, error.message)
    else:
        messages.success(request, said)
    return redirect("memory:list")


def _done(request: SignedInRequest, wanted: str, given: list[str]) -> str:
    if wanted not in DONE:
        raise IzzyError("Choose what to do with the memories.")
    work, words = DONE[wanted]
    tag = request.POST.get("tag", "").strip()
    options = {"tag": tag} if wanted == "tag" else {}
    if wanted == "tag" and not tag:
        raise IzzyError("Write the tag that is to be added.")
    if not given:
        raise IzzyError("Tick some memories first.")
    count = work(user_id=request.user.pk, memory_ids=[parse_id(key) for key in given], **options)
    counted = f"{count} {'memory' if count == 1 else 'memories'}"
    return words.format(counted, tag=tag)
