"""A conversation's decision log as REST gives it, as a page, its steps as something to read rather than JSON, and as a download."""

import json
import re
from typing import Any, Literal
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.dateparse import parse_datetime
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET
from pydantic import Field
from rest_framework.request import Request

from apps.agent.tools.results import result_json
from apps.chat.audit_log.selectors import decision_log, log_turns, turns_begun
from apps.chat.audit_log.words import TARGETS, command_of, file_name
from apps.chat.conversations.selectors import conversation_get
from apps.chat.views import conversation_or_404
from apps.core.http.rest import UserView, operation
from apps.core.http.shapes import Moment, Shape

MAX_LISTED = 50
PREVIEW_CHARS = 8_000
_HEADING = re.compile(r"^Here're the files and directories.*\n?|^Here's the content of .*\n?")
"""The file tool's line to the model above a listing or a text."""
_PATHS = {"path", "old_path", "new_path", "command"}
_OLD, _NEW = ("old_str", "old_string"), ("new_str", "new_string")
_TEXTS = ("file_text", "content", "insert_text", "text", *_NEW)
PAGE_SIZE = 30


class LogStepOutput(Shape):
    id: UUID
    at: Moment
    round: int
    tool: str
    input: dict[str, Any]
    result: str
    title: str = Field(description="What the call is, in words.")
    target: str = Field(description="What it is about: a file, a query, a note's text.")
    outcome: str
    state: Literal["ok", "error", "not_run", "open"]
    error_code: str
    is_recovery: bool = Field(description="Belongs to what made good an earlier error.")
    recovered_by: UUID | None = Field(description="The later call that made this error good.")
    duration_ms: int
    lines: int = Field(description="Written into a file or a note.")
    characters: int


class LogTurnOutput(Shape):
    turn: UUID
    at: Moment
    said: str
    state: str
    replaced_by: UUID | None = Field(description="The turn that an edit or a retry put in its place.")
    error: dict[str, Any] | None
    model: str
    duration_ms: int | None
    steps: list[LogStepOutput]
    answer: str
    outcome: list[str]
    written: dict[str, int]
    memories: list[dict[str, Any]]
    files: list[dict[str, Any]]
    usage: dict[str, Any]


class LogOutput(Shape):
    conversation: dict[str, Any]
    turns: list[LogTurnOutput]
    totals: dict[str, Any]


class LogView(UserView):
    """`GET /conversations/{id}/log/`: turn by turn what the model chose to do, oldest first."""

    @operation("conversations_log", answer=LogOutput)
    def get(self, request: Request, conversation_id: str) -> dict[str, Any]:
        """Read turn by turn what the model chose to do and what came of it, oldest first."""
        return decision_log(conversation_get(self.user_id, conversation_id))


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
        texts = []
        for entry in entries[:MAX_LISTED] if isinstance(entries, list) else []:
            named = ("text", "title", *TARGETS) if isinstance(entry, dict) else ()
            text = (
                entry
                if isinstance(entry, str)
                else next((entry[key] for key in named if entry.get(key)), "")
            )
            texts += [str(text)] if text else []
        if texts:
            return texts
    return []


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
    found = conversation_or_404(request, conversation_id)
    page = Paginator(turns_begun(found), PAGE_SIZE).get_page(request.GET.get("page"))
    turns = log_turns(found, list(page))
    places = {turn["turn"] for turn in turns}
    for turn in turns:
        usage = turn["usage"]
        turn["tokens_read"] = (
            usage["input_tokens"] + usage["cache_read_tokens"] + usage["cache_write_tokens"]
        )
        turn["at"] = parse_datetime(turn["at"])
        turn["steps"] = [step | {"card": step_card(step)} for step in turn["steps"]]
        turn["replaced_here"] = turn["replaced_by"] in places
    return render(
        request, "chat/log.html", {"conversation": found, "page": page, "turns": turns, "nav": "log"}
    )


@never_cache
@require_GET
def log_download(request: HttpRequest, conversation_id: str) -> HttpResponse:
    """The whole log as a JSON file."""
    found = conversation_or_404(request, conversation_id)
    body = json.dumps(decision_log(found), ensure_ascii=False, indent=2)
    response = HttpResponse(body, content_type="application/json")
    response["Content-Disposition"] = f'attachment; filename="izzy-log-{found.id}.json"'
    return response
