"""Folders of conversations on pages: made, renamed, opened, deleted, and a conversation moved into one."""

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.template.defaultfilters import pluralize
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from apps.accounts.access import SignedInRequest
from apps.chat.conversations import folders
from apps.chat.conversations.services import conversation_change
from apps.chat.models import Conversation, Folder
from apps.chat.views import conversation_or_404
from apps.core.errors import IzzyError, NotFound
from apps.core.http.htmx import is_fragment

NEW = "new"
"""Stands in a form in place of a folder's id where one is to be made."""


def folder_or_404(request: SignedInRequest, folder_id: str) -> Folder:
    """The user's own folder."""
    try:
        return folders.folder_get(request.user.pk, folder_id)
    except NotFound as error:
        raise Http404(error.message) from error


def asks(request: SignedInRequest, form: str, status: int = 200, **context: Any) -> HttpResponse:
    """A question: in the dialog of the page that asks for it, or on a page of its own."""
    whole = not is_fragment(request)
    context |= {"nav": "conversations", "form": form, "whole": whole}
    return render(request, "chat/ask.html" if whole else form, context, status=status)


def _done(request: SignedInRequest, said: str, url: str, *, go: bool = True) -> HttpResponse:
    """After the act: for the dialog its line as JSON where the page stays (`go` False), else the page that shows what came of it."""
    asked = request.headers.get("Accept") == "application/json"
    if asked and not go:
        return JsonResponse({"said": said})
    messages.success(request, said)
    return JsonResponse({"url": url}) if asked else redirect(url)


def _refused(request: SignedInRequest, error: IzzyError, form: str, **context: Any) -> HttpResponse:
    if request.headers.get("Accept") == "application/json":
        return JsonResponse({"message": error.message}, status=422)
    return asks(request, form, 422, problem=error.message, **context)


def list_url(folder: Folder | None = None) -> str:
    return reverse("chat:conversation-list") + (f"?folder={folder.pk}" if folder else "")


@require_http_methods(["GET", "POST"])
def folder_new(request: SignedInRequest) -> HttpResponse:
    """Asks for a name, and makes the folder."""
    form = "chat/folders/_name.html"
    if request.method == "GET":
        return asks(request, form)
    name = request.POST.get("name", "")
    try:
        made = folders.folder_create(user_id=request.user.pk, name=name)
    except IzzyError as error:
        return _refused(request, error, form, name=name)
    return _done(request, f"Made the folder “{made}”.", list_url(made))


@require_http_methods(["GET", "POST"])
def folder_rename(request: SignedInRequest, folder_id: str) -> HttpResponse:
    """Asks for another name, and gives it."""
    folder, form = folder_or_404(request, folder_id), "chat/folders/_name.html"
    if request.method == "GET":
        return asks(request, form, folder=folder, name=folder.name)
    name = request.POST.get("name", "")
    try:
        folder = folders.folder_change(user_id=request.user.pk, folder_id=folder.pk, name=name)
    except IzzyError as error:
        return _refused(request, error, form, folder=folder, name=name)
    return _done(request, f"The folder is called “{folder}” now.", list_url(folder))


@require_http_methods(["GET", "POST"])
def folder_delete(request: SignedInRequest, folder_id: str) -> HttpResponse:
    """Says that the conversations stay, and takes the folder away."""
    folder = folder_or_404(request, folder_id)
    if request.method == "GET":
        [counted] = folders.folders_counted(request.user.pk).filter(pk=folder.pk)
        return asks(request, "chat/folders/_delete.html", folder=counted)
    left = folders.folder_delete(user_id=request.user.pk, folder_id=folder.pk)
    where = (
        f" {left} conversation{pluralize(left)} stay{pluralize(left, 's,')} in your list."
        if left
        else ""
    )
    return _done(request, f"Deleted the folder “{folder}”.{where}", list_url())


@require_POST
def folder_open(request: SignedInRequest, folder_id: str) -> HttpResponse:
    """Opens a closed folder in the list beside every page, or closes it; answers with it."""
    folder = folder_or_404(request, folder_id)
    folders.folder_change(user_id=request.user.pk, folder_id=folder.pk, opened=not folder.opened)
    if not is_fragment(request):
        return redirect("chat:conversation-list")
    [shown] = [each for each in folders.folders_listed(request.user.pk) if each.pk == folder.pk]
    context = {"folder": shown, "current": request.POST.get("current", "")[:64]}
    return render(request, "chat/folders/_folder.html", context)


@require_http_methods(["GET", "POST"])
def conversation_move(request: SignedInRequest, conversation_id: str) -> HttpResponse:
    """Asks for the folder, which may be a new one, and moves the conversation."""
    found: Conversation = conversation_or_404(request, conversation_id)
    form, user_id = "chat/folders/_move.html", request.user.pk
    context: dict[str, Any] = {
        "conversation": found,
        "folders": folders.folders_for(user_id),
        "new": NEW,
    }
    if request.method == "GET":
        return asks(request, form, **context)
    try:
        folder = folder_chosen(request)
        conversation_change(
            user_id=user_id, conversation_id=found.pk, folder=folder, unfile=folder is None
        )
    except IzzyError as error:
        return _refused(request, error, form, **context)
    said = f"Moved “{found}” to “{folder}”." if folder else f"“{found}” is in no folder now."
    return _done(request, said, list_url(folder), go=False)


def folder_chosen(request: SignedInRequest) -> Folder | None:
    """The folder that a form names, made where it is new; None for none. IzzyError as of `folder_create`, NotFound."""
    given = request.POST.get("folder", "")
    if given == NEW:
        return folders.folder_create(user_id=request.user.pk, name=request.POST.get("name", ""))
    return folders.folder_get(request.user.pk, given) if given else None
