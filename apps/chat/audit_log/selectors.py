"""Reads a conversation's decision log out of its rows."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.agent.model.client import Usage
from apps.agent.models import ModelCall, ToolCall
from apps.agent.selectors import TOTALS, toolcalls_of
from apps.chat.audit_log.words import (
    Known,
    Touch,
    amount,
    command_of,
    counted,
    is_failure,
    outcome,
    recoveries,
    strongest,
    target,
    title,
    touches_of,
    written_text,
)
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn, TurnState
from apps.core.ids import parse_id

FIELDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "cost_usd", "calls")
STATES = {
    TurnState.STOPPED: "You stopped it.",
    TurnState.WAITING: "Waits for you.",
    TurnState.RUNNING: "Under way.",
}
FILE_SENTENCES = {"written": "Wrote {name}", "changed": "Updated {name}", "deleted": "Deleted {name}"}
NOTE_SENTENCES = {
    "written": ("Saved a memory.", "Saved {n} memories."),
    "changed": ("Corrected a memory.", "Corrected {n} memories."),
    "deleted": ("Deleted a memory.", "Deleted {n} memories."),
}
FAILED = (TurnState.FAILED, TurnState.INTERRUPTED)


def usage_of_turns(user_id: UUID, turn_ids: Collection[UUID]) -> dict[UUID, Usage]:
    """The usage of each turn, all purposes together (the answer, its title, searches of deep memory)."""
    calls = ModelCall.objects.owned_by(user_id).filter(ModelCall.BY_A_MODEL, turn_id__in=turn_ids).order_by()
    totals: dict[str, Any] = {name: TOTALS[name] for name in FIELDS}
    rows: Iterable[Any] = calls.values("turn_id").annotate(**totals)
    return {row["turn_id"]: _usage(row) for row in rows}


def _usage(row: dict[str, Any]) -> Usage:
    return Usage(**{name: row[name] for name in FIELDS} | {"cost_usd": float(row["cost_usd"])})


def outcome_lines(entry: dict[str, Any]) -> list[str]:
    """The sentences for one turn of the log; an answer that followed no tool call is `Answered.`"""
    lines = [*_errors(entry), *_files(entry), *_notes(entry)]
    if not lines and entry["steps"]:
        lines = [_last_found(entry)]
    lines += _end(entry)
    return [line for line in lines if line] or ["Answered." if entry["answer"] else "No answer."]


def _errors(entry: dict[str, Any]) -> Iterator[str]:
    failed = [step for step in entry["steps"] if step["state"] == "error"]
    recovered = sum(step["recovered_by"] is not None for step in failed)
    if recovered:
        yield f"Recovered from {counted(recovered, 'error')}."
    if len(failed) > recovered:
        yield f"{counted(len(failed) - recovered, 'call')} failed."


def _files(entry: dict[str, Any]) -> Iterator[str]:
    sizes = {
        step["input"].get("path"): step
        for step in entry["steps"]
        if step["tool"] == "memory" and step["state"] == "ok" and command_of(step["input"]) == "create"
    }
    for file in entry["files"]:
        sentence = FILE_SENTENCES.get(file["action"])
        if sentence is None:
            continue
        words = sentence.format(name=PurePosixPath(file["path"]).name)
        step = sizes.get(file["path"])
        size = (
            f" ({counted(step['lines'], 'line')}, {counted(step['characters'], 'character')})" if step else ""
        )
        yield f"{words}{size}."


def _notes(entry: dict[str, Any]) -> Iterator[str]:
    for action, (one, many) in NOTE_SENTENCES.items():
        number = sum(note["action"] == action for note in entry["memories"])
        if number:
            yield one if number == 1 else many.format(n=number)


def _last_found(entry: dict[str, Any]) -> str:
    """The outcome of the last successful call, for a turn without changes."""
    done = [step for step in entry["steps"] if step["state"] == "ok"]
    if not done:
        return ""
    words = str(done[-1]["outcome"])
    return words if words.endswith((".", "…", "?", "!")) else f"{words}."


def _end(entry: dict[str, Any]) -> Iterator[str]:
    if entry["error"] is not None:
        yield entry["error"]["message"] or "It failed."
    elif entry["state"] in STATES:
        yield STATES[TurnState(entry["state"])]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sources:
    """The rows behind a stretch of the log."""

    messages: Mapping[UUID, list[Message]]
    calls: Mapping[UUID, list[ToolCall]]
    usage: Mapping[UUID, Usage]
    known: Known


def turns_begun(conversation: Conversation) -> QuerySet[Turn]:
    """The turns that the log tells of, oldest first: all that have begun, replaced ones too."""
    rows = Turn.objects.owned_by(conversation.user_id).filter(conversation=conversation)
    return rows.exclude(state=TurnState.QUEUED).order_by("position")


def decision_log(conversation: Conversation) -> dict[str, Any]:
    """The whole log: `{conversation: {id, title, created_at, updated_at}, turns: [see log_turns], totals}`.

    `totals` are `{turns, calls, errors, recovered, lines, characters, duration_ms, usage}`.
    """
    turns = log_turns(conversation, turns_begun(conversation))
    return {
        "conversation": {
            "id": str(conversation.id),
            "title": str(conversation),
            "created_at": conversation.created_at.isoformat(),
            "updated_at": conversation.updated_at.isoformat(),
        },
        "turns": turns,
        "totals": _totals(turns),
    }


def log_turns(conversation: Conversation, turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """These turns as the log tells them.

    Each is `{turn, at, said, state, replaced_by, error, model, duration_ms, steps, answer, outcome, written, memories,
    files, usage}`. `steps` are the tool calls in order: `{id, at, round, tool, input, result, title, target, outcome,
    state, error_code, is_recovery, recovered_by, duration_ms, lines, characters}` with state `ok`, `error`, `not_run`
    or `open`. `outcome` is a list of sentences, `written` `{files, notes, lines, characters}`.
    """
    rows = list(turns)
    sources = _sources(conversation.user_id, rows)
    return [_turn(turn, sources) for turn in rows]


def _sources(user_id: UUID, turns: Sequence[Turn]) -> _Sources:
    ids = [turn.id for turn in turns]
    messages: dict[UUID, list[Message]] = defaultdict(list)
    said = Message.objects.owned_by(user_id).filter(turn_id__in=ids, kind=MessageKind.TEXT).defer("blocks")
    for message in said.order_by("position"):
        if message.turn_id:
            messages[message.turn_id].append(message)
    calls: dict[UUID, list[ToolCall]] = defaultdict(list)
    for call in toolcalls_of(user_id=user_id, turn_ids=ids):
        if call.turn_id:
            calls[call.turn_id].append(call)
    touches = [touch for turn in turns for touch in _touches(turn, calls[turn.id])]
    return _Sources(
        messages=messages, calls=calls, usage=usage_of_turns(user_id, ids), known=Known(user_id, touches)
    )


def _touches(turn: Turn, calls: Sequence[ToolCall]) -> list[Touch]:
    surfaced = [
        Touch(parse_id(item["id"]), "surfaced")
        for item in turn.memories
        if "id" in item and "source" not in item
    ]
    return surfaced + [touch for call in calls for touch in touches_of(call)]


def _turn(turn: Turn, sources: _Sources) -> dict[str, Any]:
    calls = sources.calls.get(turn.id, [])
    messages = sources.messages.get(turn.id, [])
    question = next((message for message in messages if message.role == Role.USER), None)
    answers = [message.text for message in messages if message.role == Role.ASSISTANT and message.text]
    steps = _steps(calls, sources.known)
    touched = strongest(_touches(turn, calls))
    failed = turn.state in FAILED
    entry: dict[str, Any] = {
        "turn": str(turn.id),
        "at": (question.created_at if question else turn.created_at).isoformat(),
        "said": question.text if question else "",
        "state": turn.state,
        "replaced_by": str(question.superseded_by_id) if question and question.superseded_by_id else None,
        "error": {"code": turn.error_code, "message": turn.error_message} if failed else None,
        "model": turn.model,
        "duration_ms": milliseconds(turn.started_at, turn.ended_at),
        "steps": steps,
        "answer": answers[-1] if answers else "",
        "written": _written(calls),
        "memories": [sources.known.note(key, act) for key, act in touched.items() if isinstance(key, UUID)],
        "files": [sources.known.file(key, act) for key, act in touched.items() if isinstance(key, str)],
        "usage": _usage_json(sources.usage.get(turn.id, Usage())),
    }
    return entry | {"outcome": outcome_lines(entry)}


def _steps(calls: Sequence[ToolCall], known: Known) -> list[dict[str, Any]]:
    made_good, recovering = recoveries(calls)
    return [
        _step(call, known)
        | {"is_recovery": call.id in recovering, "recovered_by": _id(made_good.get(call.id))}
        for call in calls
    ]


def _step(call: ToolCall, known: Known) -> dict[str, Any]:
    lines, characters = amount(written_text(call) or "")
    return {
        "id": str(call.id),
        "at": (call.started_at or call.created_at).isoformat(),
        "round": call.round,
        "tool": call.name,
        "input": call.input,
        "result": call.result,
        "title": title(call),
        "target": known.text_of(target(call)),
        "outcome": outcome(call),
        "state": _state(call),
        "error_code": call.error_code,
        "duration_ms": call.duration_ms,
        "lines": lines,
        "characters": characters,
    }


def _state(call: ToolCall) -> str:
    if call.state != ToolCall.State.DONE:
        return "open"
    if not call.is_error:
        return "ok"
    return "error" if is_failure(call) else "not_run"


def _written(calls: Sequence[ToolCall]) -> dict[str, int]:
    texts = [(call, text) for call in calls if (text := written_text(call)) is not None]
    sizes = [amount(text) for _, text in texts]
    return {
        "files": len({str(call.input.get("path")) for call, _ in texts if call.name == "memory"}),
        "notes": sum(call.name != "memory" for call, _ in texts),
        "lines": sum(lines for lines, _ in sizes),
        "characters": sum(characters for _, characters in sizes),
    }


def _totals(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    steps = [step for turn in turns for step in turn["steps"]]
    usage: dict[str, Any] = defaultdict(int)
    for turn in turns:
        for name, value in turn["usage"].items():
            usage[name] += value
    return {
        "turns": len(turns),
        "calls": len(steps),
        "errors": sum(step["state"] == "error" for step in steps),
        "recovered": sum(step["recovered_by"] is not None for step in steps),
        "lines": sum(turn["written"]["lines"] for turn in turns),
        "characters": sum(turn["written"]["characters"] for turn in turns),
        "duration_ms": sum(turn["duration_ms"] or 0 for turn in turns),
        "usage": dict(usage),
    }


def milliseconds(start: datetime | None, end: datetime | None) -> int | None:
    return max(0, round((end - start).total_seconds() * 1000)) if start and end else None


def _usage_json(usage: Usage) -> dict[str, Any]:
    return asdict(usage) | {"cost_usd": round(usage.cost_usd, 6)}


def _id(value: UUID | None) -> str | None:
    return str(value) if value else None
