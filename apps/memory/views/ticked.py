"""Acts on the notes that were ticked on the memories page."""

from collections.abc import Callable
from functools import partial
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import IzzyError, NotFound
from apps.core.ids import parse_id
from apps.memory.services.ticked import memories_archive, memories_delete, memories_restore, memories_tag

from .taking_back import done_next, list_url, named, with_steps

DONE: dict[str, tuple[Callable[..., int], str]] = {
    "archive": (memories_archive, "Archived {}."),
    "delete": (memories_delete, "Deleted {}."),
    "restore": (memories_restore, "Brought back {}."),
    "tag": (memories_tag, "Tagged “{tag}”: {}."),
}
GONE = "Nothing was changed: one of these memories is no longer there."


@require_POST
def ticked(request: SignedInRequest) -> HttpResponse:
    """`do` is one of `DONE`, or `merge`, which leads to the form for it; back to the list, which says what was done and
    offers to undo it."""
    wanted, given = request.POST.get("do", ""), request.POST.getlist("notes")
    if wanted == "merge":
        return redirect(f"{reverse('memory:merge')}?{urlencode([('notes', key) for key in given])}")
    try:
        done_next(request, *_done(request, wanted, given))
    except NotFound:
        done_next(request, GONE, failed=True)
    except IzzyError as error:
        done_next(request, error.message, failed=True)
    return redirect(list_url(request.POST.get("back", "")[:2000]))


def _done(request: SignedInRequest, wanted: str, given: list[str]) -> tuple[str, list[str]]:
    """A line on what was done, and the steps back."""
    if wanted not in DONE:
        raise IzzyError("Choose what to do with the memories.")
    work, words = DONE[wanted]
    tag = request.POST.get("tag", "").strip()
    if wanted == "tag" and not tag:
        raise IzzyError("Write the tag that is to be added.")
    if not given:
        raise IzzyError("Tick some memories first.")
    user_id, keys = request.user.pk, list(dict.fromkeys(map(parse_id, given)))
    options = {"tag": tag} if wanted == "tag" else {}
    _, steps = with_steps(user_id, keys, partial(work, user_id=user_id, memory_ids=keys, **options))
    return words.format(named(user_id, keys), tag=tag), steps
