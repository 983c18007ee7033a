"""Moving, archiving and deleting several conversations at once on their page, and undoing it there."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect
from django.template.defaultfilters import pluralize
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import SignedInRequest
from apps.chat.conversations.folders import conversations_archive, conversations_file
from apps.chat.conversations.selectors import conversations_for
from apps.chat.conversations.services import conversation_restore, conversations_hide
from apps.chat.folders.views import asks, folder_chosen, list_url
from apps.chat.views import BULK_DONE
from apps.core.errors import IzzyError, NotFound
from apps.core.ids import parse_id
from apps.memory.notes.with_conversation import notes_from

NOTES_SHOWN = 12
TITLES_SHOWN = 8


@require_GET
def conversations_ask(request: SignedInRequest) -> HttpResponse:
    """The question before the ticked ones are deleted: their titles, and the memories that came from them."""
    try:
        keys = _chosen(request.GET.getlist("conversations"))
    except IzzyError as error:
        return asks(request, "chat/_conversations_delete.html", problem=error.message)
    rows = list(conversations_for(request.user.pk).filter(pk__in=keys))
    notes = notes_from(request.user.pk, *(row.pk for row in rows))
    count = notes.count()
    context: dict[str, Any] = {
        "rows": rows,
        "shown": rows[:TITLES_SHOWN],
        "others": max(0, len(rows) - TITLES_SHOWN),
        "notes": notes[:NOTES_SHOWN],
        "count": count,
        "more": max(0, count - NOTES_SHOWN),
        "back": _back(request.GET.get("back", "")),
    }
    return asks(request, "chat/_conversations_delete.html", **context)


@require_POST
def conversations_bulk(request: SignedInRequest) -> HttpResponse:
    """Moves, archives or deletes what is ticked, or brings it back: all of it or nothing; the next page offers to undo it."""
    try:
        keys = _chosen(request.POST.getlist("conversations"))
        work = WORK.get(request.POST.get("do", ""))
        if work is None:
            raise IzzyError("Choose what to do with the conversations.")
        said, undo, steps = work(request, keys)
        request.session[BULK_DONE] = {"said": said, "undo": undo, "steps": steps}
    except IzzyError as error:
        messages.error(request, error.message)
    return _to_list(request)


@require_POST
def conversations_undo(request: SignedInRequest) -> HttpResponse:
    """Takes back what the line above the list says; what is no longer there stays as it is."""
    try:
        steps = [step.partition(" ") for step in request.POST.getlist("step")]
        pairs = [(parse_id(key), folder) for key, _, folder in steps]
        messages.success(request, UNDO[request.POST.get("undo", "")](request.user.pk, pairs))
    except KeyError:
        messages.error(request, "There is nothing to undo.")
    except IzzyError as error:
        messages.error(request, error.message)
    return _to_list(request)


def _chosen(given: Sequence[str]) -> list[UUID]:
    keys = [parse_id(key) for key in dict.fromkeys(given)]
    if not keys:
        raise IzzyError("Tick some conversations first.")
    return keys


def _many(keys: Collection[Any]) -> str:
    return f"{len(keys)} conversation{pluralize(len(keys))}"


def _back(given: str) -> str:
    return given[:2000]  # a search of 200 signs, each up to nine as an address has them


def _to_list(request: SignedInRequest) -> HttpResponse:
    back = _back(request.POST.get("back", ""))
    return redirect(f"{list_url()}?{back}" if back else list_url())


Done = tuple[str, str, list[str]]


def _move(request: SignedInRequest, keys: list[UUID]) -> Done:
    if not request.POST.get("folder"):
        raise IzzyError("Choose a folder first.")
    folder = None if request.POST["folder"] == "none" else folder_chosen(request)
    were = conversations_for(request.user.pk).filter(pk__in=keys).values_list("pk", "folder_id")
    steps = [f"{key} {was or ''}" for key, was in were]
    conversations_file(user_id=request.user.pk, conversation_ids=keys, folder_id=folder and folder.pk)
    many = _many(keys)
    said = f"Moved {many} to “{folder}”." if folder else f"Took {many} out of the folder."
    return said, "move", steps


def _archive(request: SignedInRequest, keys: list[UUID], *, archived: bool) -> Done:
    # A search finds archived ones beside others: what is so already is nothing to undo.
    others = conversations_for(request.user.pk).filter(pk__in=keys).exclude(archived=archived)
    steps = [str(key) for key in others.values_list("pk", flat=True)]
    conversations_archive(user_id=request.user.pk, conversation_ids=keys, archived=archived)
    said = f"{'Archived' if archived else 'Brought back'} {_many(keys)}."
    return said, "archive" if archived else "restore", steps


def _delete(request: SignedInRequest, keys: list[UUID]) -> Done:
    memories = conversations_hide(
        user_id=request.user.pk, conversation_ids=keys, memories="memories" in request.POST
    )
    also = f" and {memories} memor{pluralize(memories, 'y,ies')}" if memories else ""
    return f"Deleted {_many(keys)}{also}.", "delete", [str(key) for key in keys]


WORK: dict[str, Callable[[SignedInRequest, list[UUID]], Done]] = {
    "move": _move,
    "archive": partial(_archive, archived=True),
    "restore": partial(_archive, archived=False),
    "delete": _delete,
}

Pairs = list[tuple[UUID, str]]


@transaction.atomic
def _moved_back(user_id: UUID, pairs: Pairs) -> str:
    for folder in {folder for _, folder in pairs}:
        keys = [key for key, was in pairs if was == folder]
        conversations_file(user_id=user_id, conversation_ids=keys, folder_id=folder or None)
    return f"Moved {_many(pairs)} back."


def _archived_again(user_id: UUID, pairs: Pairs, *, archived: bool) -> str:
    conversations_archive(user_id=user_id, conversation_ids=[key for key, _ in pairs], archived=archived)
    return f"{'Archived' if archived else 'Brought back'} {_many(pairs)}."


def _undeleted(user_id: UUID, pairs: Pairs) -> str:
    back = 0
    for key, _ in pairs:
        try:
            conversation_restore(user_id=user_id, conversation_id=key)
        except NotFound:
            continue
        back += 1
    if not back:
        raise NotFound("These conversations can no longer be brought back.")
    return (
        f"Brought back {back} of {_many(pairs)}."
        if back < len(pairs)
        else f"Brought back {_many(pairs)}."
    )


UNDO: dict[str, Callable[[UUID, Pairs], str]] = {
    "move": _moved_back,
    "archive": partial(_archived_again, archived=False),
    "restore": partial(_archived_again, archived=True),
    "delete": _undeleted,
}
