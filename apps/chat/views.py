"""Pages of the chat and the fragments of its sidebar."""

import hashlib
import json
from typing import Any, cast
from urllib.parse import quote
from uuid import UUID

from django.conf import settings
from django.core.paginator import Paginator
from django.core.signing import BadSignature
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts.models import User
from apps.agent.model.client import current_endpoint
from apps.agent.tools.base import tool_words
from apps.builder.builds.selectors import questions_pressing
from apps.capabilities.sandbox.running import NONE, chosen_name
from apps.chat.conversations import services
from apps.chat.conversations.folders import folder_get, folders_for, folders_listed
from apps.chat.conversations.links import ConversationLinks, parts_of, url_of
from apps.chat.conversations.selectors import (
    PAGE_SIZE,
    conversation_get,
    conversation_hidden,
    conversations_page,
    conversations_search,
    conversations_shown,
    has_archived,
)
from apps.chat.done import done_lately
from apps.chat.first_steps import first_steps, suggestions
from apps.chat.models import Conversation
from apps.chat.palette import palette
from apps.chat.stream.snapshot import snapshot
from apps.chat.templatetags.conversation_groups import conversation_groups
from apps.core.errors import InvalidInput, IzzyError, NotFound
from apps.core.http.htmx import fills, is_fragment
from apps.core.registries import undecided
from apps.core.text import clean_text
from apps.memory.notes.review import waiting_count
from apps.memory.notes.with_conversation import notes_from, notes_gone_with

MAX_QUERY_CHARS = 200
NOTES_SHOWN = 12
BULK_DONE = "conversations_done"
"""Key in the session: what was done to several conversations, for the next page of their list: `said`, `undo` (a name of what takes
it back) and `steps`, each an id, with the folder that it was in after a space."""
DELETED = "deleted_conversation"
"""Key in the session: id and title of the conversation that was deleted while it was looked at, and how many memories went with
it, for the next page."""


@never_cache
@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """An empty chat."""
    return render(request, "chat/page.html", _page(request, None))


@never_cache
@require_GET
def conversation(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """One conversation, painted from its snapshot; where there is none (any more), a page that says so."""
    try:
        found = conversation_get(_user_id(request), conversation_id)
    except NotFound:
        hidden = conversation_hidden(_user_id(request), conversation_id)
        context: dict[str, Any] = {"nav": "chat", "hidden": hidden}
        if hidden and hidden.deleted_at:
            since = hidden.deleted_at - services.UNDO_FOR
            context["memories"] = len(notes_gone_with(_user_id(request), hidden.id, since))
        return render(request, "chat/gone.html", context, status=404)
    return render(request, "chat/page.html", _page(request, found))


@never_cache
@require_GET
def link(request: HttpRequest, conversation_id: str, signed: str) -> HttpResponse:
    """An address that the assistant may have put together from what others wrote, whole, before it is gone to."""
    found = conversation_or_404(request, conversation_id)
    try:
        url = url_of(found.id, signed)
    except BadSignature:
        raise Http404 from None
    before, host, after = parts_of(url)
    named = ConversationLinks(_user_id(request), found.id)(url) == url
    context = {
        "conversation": found,
        "url": url,
        "before": before,
        "host": host,
        "after": after,
        "named": named,
    }
    return render(request, "chat/link.html", context)


@never_cache
@require_GET
def conversation_list(request: HttpRequest) -> HttpResponse:
    """All conversations, or the archived ones; for the sidebar's own requests its list, a page of it or what a search found."""
    if not is_fragment(request) or fills(request, "conversations-shown"):
        done = request.session.pop(BULK_DONE, None) if BULK_DONE in request.session else None
        return render(request, "chat/list.html", _shown(request) | {"done": done})
    if "show" in request.GET:
        return render(request, "chat/_list.html", _shown(request))
    return render(request, "chat/_conversations.html", _listing(request))


@require_http_methods(["GET", "POST"])
def conversation_rename(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """The form to rename a conversation, and its row once that is done."""
    found = conversation_or_404(request, conversation_id)
    if request.method == "GET":
        return render(request, "chat/_conversation_rename.html", {"conversation": found})
    title = request.POST.get("title", "")
    try:
        renamed = services.conversation_rename(
            user_id=_user_id(request), conversation_id=found.id, title=title
        )
    except IzzyError as error:
        context = {"conversation": found, "error": error.message}
        return render(request, "chat/_conversation_rename.html", context, status=422)
    context = {"conversation": renamed, "current": str(found.id) if _is_current(request, found) else ""}
    return render(request, "chat/_conversation_row.html", context)


@require_http_methods(["GET", "POST", "DELETE"])
def conversation_delete(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """GET: what a deletion would take, the memories that came from it among them, as a dialog or a page. POST deletes, with
    those where they are ticked (`memories`), and offers to undo it for a while; whoever looks at it is sent to an empty chat."""
    found = conversation_or_404(request, conversation_id)
    fragment = is_fragment(request)
    context: dict[str, Any] = {"conversation": found, "place": _place(request)}
    if request.method == "GET":
        notes = notes_from(_user_id(request), found.id)
        context |= {"notes": notes[:NOTES_SHOWN], "count": notes.count(), "nav": "chat"}
        context["more"] = max(0, context["count"] - NOTES_SHOWN)
        template = "chat/_conversation_delete.html" if fragment else "chat/delete.html"
        return render(request, template, context)
    memories = services.conversation_hide(
        user_id=_user_id(request), conversation_id=found.id, memories="memories" in request.POST
    )
    if not fragment or _is_current(request, found):
        request.session[DELETED] = [str(found.id), str(found), memories]
        home = reverse("chat:home")
        return HttpResponse(headers={"HX-Redirect": home}) if fragment else redirect(home)
    return render(request, "chat/_conversation_deleted.html", context | {"memories": memories})


@require_POST
def conversation_restore(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """Brings a deleted conversation back: its row, or without HTMX its page."""
    try:
        found = services.conversation_restore(user_id=_user_id(request), conversation_id=conversation_id)
    except NotFound as error:
        raise Http404(error.message) from error
    if not is_fragment(request):
        return redirect("chat:conversation", conversation_id=found.id)
    context = {"conversation": found, "place": _place(request)}
    return render(request, "chat/_conversation_row.html", context)


@never_cache
@require_GET
def news(request: HttpRequest) -> JsonResponse:
    """News for any page: whether the sidebar's list has changed (`stamp` is another then), and the questions for whose answer
    a build waits, with the seconds left, how much else waits for a decision, and how much for a review."""
    rows, _ = conversations_page(_user_id(request))
    groups = conversation_groups(rows, timezone.get_current_timezone_name())
    listed = [
        [group["label"], [[str(row.id), row.title] for row in group["conversations"]]]
        for group in groups
    ]
    listed += [
        [folder.name, [[str(row.id), row.title] for row in folder.rows]]  # type: ignore[attr-defined]
        for folder in folders_listed(_user_id(request))
    ]
    asks = [
        {
            "id": str(question.pk),
            "build": str(question.build_id),
            "name": question.build.name,
            "text": question.payload.get("text", ""),
            "seconds": round(left, 1),
        }
        for question, left in questions_pressing(_user_id(request))
    ]
    waiting = sum(count(_user_id(request)) for count in undecided.values())
    stamp = hashlib.sha256(json.dumps(listed).encode()).hexdigest()
    done = {"done": done_lately(_user_id(request))} if "done" in request.GET else {}
    review = waiting_count(_user_id(request))
    return JsonResponse({"stamp": stamp, "asks": asks, "waiting": waiting, "review": review, **done})


@never_cache
@require_GET
def palette_lines(request: HttpRequest) -> HttpResponse:
    """The lines of the command palette that fit what was typed."""
    groups = palette(cast("User", request.user), _query(request))
    return render(request, "chat/palette.html", {"groups": groups})


@never_cache
@require_GET
def suggested(request: HttpRequest) -> HttpResponse:
    """The suggestions of an empty chat, as things are now."""
    return render(request, "chat/suggestions.html", {"suggestions": suggestions(_user_id(request))})


def _page(request: HttpRequest, shown: Conversation | None) -> dict[str, Any]:
    listing = _listing(request) | {"active_id": str(shown.id) if shown else ""}
    return {
        **listing,
        "nav": "chat",
        "conversation": shown,
        "tool_words": tool_words(),
        "snapshot": snapshot(shown).frames[0] if shown else None,
        "offline": current_endpoint().is_offline,
        "suggestions": suggestions(_user_id(request)),
        **(_steps(request) if shown is None else {}),
        "has_sandbox": chosen_name() != NONE,
        "attachment_limit": settings.IZZY_ATTACHMENT_LIMIT,
        "deleted": request.session.pop(DELETED, None) if DELETED in request.session else None,
    }


def _steps(request: HttpRequest) -> dict[str, Any]:
    """How far the set-up has come, for a chat that begins empty."""
    steps = first_steps(cast("User", request.user))
    return {"steps": steps, "steps_done": sum(step.done for step in steps)}


def _listing(request: HttpRequest) -> dict[str, Any]:
    query, number = _query(request), _number(request)
    active = request.GET.get("active", "")[:64]
    context: dict[str, Any] = {"query": query, "page": number, "active_id": active, "has_more": False}
    if query:
        return context | {"conversations": _found(request, query)}
    whole = "whole" in request.GET  # the pages before as well, to draw a list again that is open so far
    first = 1 if whole else number
    rows, has_more = conversations_page(_user_id(request), number, first=first)
    if first == 1:
        context |= {"ways": True, "has_archived": has_archived(_user_id(request))}
        context["folders"] = folders_listed(_user_id(request))
    return context | {"conversations": rows, "has_more": has_more}


def _shown(request: HttpRequest) -> dict[str, Any]:
    """The context of the page of all conversations; its names differ from those of the sidebar's list beside it."""
    archived, query = request.GET.get("show") == "archived", _query(request)
    folder, wanted = None, "" if archived or query else request.GET.get("folder", "")
    loose = wanted == "none"
    if wanted and not loose:
        try:
            folder = folder_get(_user_id(request), wanted)
        except NotFound:
            raise Http404 from None
    shown = conversations_shown(
        _user_id(request), archived=archived, folder=folder.pk if folder else None
    )
    shown = shown.filter(folder=None) if loose else shown
    rows: Any = _found(request, query) if query else shown
    page = Paginator(rows, PAGE_SIZE).get_page(_number(request))
    asked = (
        f"q={quote(query)}&"
        if query
        else "show=archived&"
        if archived
        else "folder=none&"
        if loose
        else f"folder={folder.pk}&"
        if folder
        else ""
    )
    context = {"nav": "conversations", "found_by": query, "archived": archived, "asked": asked}
    context |= {"folder": folder, "loose": loose, "all_folders": folders_for(_user_id(request))}
    return context | {"listed": page, "place": "page-"}


def _found(request: HttpRequest, query: str) -> list[Conversation]:
    found = conversations_search(_user_id(request), query)
    for row, said in found:
        row.said = said
    return [row for row, _ in found]


def _query(request: HttpRequest) -> str:
    try:
        return clean_text(
            request.GET.get("q", "")[:MAX_QUERY_CHARS], field="q", max_chars=MAX_QUERY_CHARS
        )
    except InvalidInput:  # nothing to search for
        return ""


def _number(request: HttpRequest) -> int:
    page = request.GET.get("page", "1")
    return max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 7 else 1


def _place(request: HttpRequest) -> str:
    """Where a row stands, which its ids begin with: on the page of all conversations, or "" in the sidebar."""
    return "page-" if "page" in request.GET else ""


def conversation_or_404(request: HttpRequest, conversation_id: str) -> Conversation:
    """The user's own conversation."""
    try:
        return conversation_get(_user_id(request), conversation_id)
    except NotFound:
        raise Http404 from None


def _is_current(request: HttpRequest, found: Conversation) -> bool:
    url = request.htmx.current_url_abs_path or ""  # type: ignore[attr-defined]  # set by the middleware
    return str(url).startswith(reverse("chat:conversation", args=[found.id]))


def _user_id(request: HttpRequest) -> UUID:
    return cast("UUID", request.user.pk)
