"""The page of a conversation's decision log, its steps as something to read rather than JSON, and its download."""

import json
import re
from typing import Any, cast
from uuid import UUID

from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.dateparse import parse_datetime
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from apps.agent.tools.results import result_json
from apps.chat.audit_log.selectors import decision_log, log_turns, turns_begun
from apps.chat.audit_log.words import TARGETS, command_of, file_name
from apps.chat.conversations.selectors import conversation_get
from apps.chat.models import Conversation
from apps.core.errors import NotFound

MAX_LISTED = 50
PREVIEW_CHARS = 8_000
_HEADING = re.compile(r"^Here're the files and directories.*\n?|^Here's the content of .*\n?")
"""The file tool's line to the model above a listing or a text."""
_PATHS = {"path", "old_path", "new_path", "command"}
_OLD, _NEW = ("old_str", "old_string"), ("new_str", "new_string")
_TEXTS = ("file_text", "content", "insert_text", "text", *_NEW)
PAGE_SIZE = 30


def step_card(step: dict[str, Any]) -> dict[str, Any]:
    """`{facts: [(name, value)], removed, added, text, found: [text], result, error}`; what does not apply is empty.

    `removed` and `added` are the lines of a replacement, `text` what was written, `found` what a search gave.
    """
    given = step["input"]
    card: dict[str, Any] = {
        "facts": [],
        "removed": [],
        "added": [],
        "text": "",
        "found": [],
        "result": "",
        "error": "",
    }
    if step["tool"] == "memory":
        _file(card, given)
    else:
        card["facts"] = [(name.replace("_", " "), _value(value)) for name, value in given.items()]
    if step["state"] != "ok":
        said = step["result"].removeprefix("Error: ")
        card["error"] = said if step["state"] == "error" and said != step["outcome"] else ""
        return card
    result = result_json(step["result"])
    card["found"] = _listed(result)
    if isinstance(result, dict) and isinstance(result.get("summary"), str):
        card["result"] = result["summary"]
    elif not card["found"] and step["tool"] != "think":
        card["result"] = _answer(result, _HEADING.sub("", step["result"]))
    return card


def _file(card: dict[str, Any], given: dict[str, Any]) -> None:
    card["facts"] = [("file", file_name(str(given.get("path") or given.get("old_path") or "/memories")))]
    if given.get("new_path"):
        card["facts"].append(("new name", file_name(str(given["new_path"]))))
    if given.get("insert_line") is not None:
        card["facts"].append(("after line", str(given["insert_line"])))
    command = command_of(given)
    if command == "str_replace":
        card["removed"] = _first(given, _OLD).splitlines()
        card["added"] = _first(given, _NEW).splitlines()
    elif command in {"create", "insert"}:
        card["text"] = _first(given, _TEXTS)[:PREVIEW_CHARS]
    others = [name for name in given if name not in {*_PATHS, *_OLD, *_TEXTS, "insert_line"}]
    card["facts"] += [(name.replace("_", " "), _value(given[name])) for name in others]


def _first(given: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((str(given[name]) for name in names if isinstance(given.get(name), str)), "")


def _value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(str(item) for item in value)
    return "yes" if value is True else "no" if value is False else str(value)


def _listed(result: Any) -> list[str]:
    """The texts in a search's result."""
    lists = list(result.values()) if isinstance(result, dict) else [result]
    for entries in lists:
        texts = [_text(entry) for entry in entries[:MAX_LISTED]] if isinstance(entries, list) else []
        if any(texts):
            return [text for text in texts if text]
    return []


def _text(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    if not isinstance(entry, dict):
        return ""
    return str(next((entry[name] for name in ("text", "title", *TARGETS) if entry.get(name)), ""))


def _answer(result: Any, text: str) -> str:
    """The message or answer of a result, else the text as it is."""
    if isinstance(result, dict):
        said = result.get("answer") or result.get("message")
        if isinstance(said, str) and said:
            return said
        return "\n".join(f"{name.replace('_', ' ')}: {_value(value)}" for name, value in result.items())
    return text[:PREVIEW_CHARS]


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
