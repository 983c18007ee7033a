"""Acts on several notes of the memories page at once."""

from collections.abc import Callable
from functools import partial
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.core.errors import REFUSALS, IzzyError, NotFound
from apps.core.ids import parse_id
from apps.core.text import plain_breaks
from apps.memory.models import Kind, Memory, Tier
from apps.memory.notes.changes import memory_archive, memory_delete, memory_update
from apps.memory.notes.joining import MAX_MERGED, memory_merge
from apps.memory.notes.selectors import memories_by_id
from apps.memory.notes.undoing import bulk_change, memory_restore, memory_tag

from .done import done_next, list_url, named, own_note, with_steps

DONE: dict[str, tuple[Callable[..., Memory], str]] = {
    "archive": (memory_archive, "Archived {}."),
    "delete": (memory_delete, "Deleted {}."),
    "restore": (memory_restore, "Brought back {}."),
    "tag": (memory_tag, "Tagged “{tag}”: {}."),
    "set": (memory_update, "Set to {set}: {}."),
}
SETTABLE: dict[str, tuple[dict[str, str], str]] = {
    **{f"kind {kind.value}": ({"kind": str(kind)}, str(kind.label)) for kind in Kind},
    f"tier {Tier.LONG_TERM}": ({"tier": str(Tier.LONG_TERM)}, "long term"),
    f"tier {Tier.SHORT_TERM}": ({"tier": str(Tier.SHORT_TERM)}, "short term"),
}
"""The changes that `set` makes to notes, by what is chosen: the values of `memory_update`, and their name."""
GONE = "Nothing was changed: one of these memories is no longer there."


@require_POST
def bulk(request: SignedInRequest) -> HttpResponse:
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
    options, name = {"tag": tag} if wanted == "tag" else {}, ""
    if wanted == "set":
        chosen = request.POST.get("value", "")
        if chosen not in SETTABLE:
            raise IzzyError("Choose a kind, or how long to keep them.")
        options, name = SETTABLE[chosen]
    change = partial(bulk_change, work, user_id=user_id, memory_ids=keys, **options)
    _, steps = with_steps(user_id, keys, change)
    if not steps:
        return "Nothing was changed: they are like that already.", []
    return words.format(named(user_id, keys), tag=tag, set=name), steps


@require_http_methods(["GET", "POST"])
@own_note
def merge(request: SignedInRequest) -> HttpResponse:
    """GET `?notes=…&notes=…`: the form with their text; POST: one note of them."""
    user_id, posted = request.user.pk, request.method == "POST"
    given = request.POST if posted else request.GET
    ids = list(dict.fromkeys(map(parse_id, given.getlist("notes"))))[: MAX_MERGED + 1]
    if len(ids) > MAX_MERGED and not posted:
        problem = f"At most {MAX_MERGED} memories can be merged at once: tick fewer of them."
        return render(request, "memory/merge.html", {"nav": "memory", "problem": problem})
    found = memories_by_id(user_id, ids)
    if len(found) < len(ids):
        raise NotFound("One of these memories is no longer there.")
    notes = [found[key] for key in ids]
    text = "\n".join(note.content for note in notes)
    problem = "" if posted or len(notes) > 1 else "Tick two or more memories in the list first."
    if posted:
        text = plain_breaks(request.POST.get("content", text))
        try:
            into = parse_id(request.POST.get("into") or (ids[0] if ids else ""))
            others = [key for key in ids if key != into]
            merging = partial(memory_merge, user_id=user_id, into_id=into, from_ids=others, content=text)
            line = f"Merged into one: {named(user_id, ids)}."
            done_next(request, line, with_steps(user_id, ids, merging)[1])
            return redirect("memory:list")
        except REFUSALS as error:
            problem = error.message
    context = {"nav": "memory", "notes": notes, "text": text, "problem": problem}
    return render(request, "memory/merge.html", context, status=422 if posted else 200)
