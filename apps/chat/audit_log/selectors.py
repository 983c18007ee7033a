"""Reads a conversation's decision log out of its rows."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
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
from apps.chat.models import Conversation, Message, MessageKind, Role, Turn, TurnStatus
from apps.core.ids import note_id, parse_id
from apps.memory.recall.block import notes_by_handle

STATES = {
    TurnStatus.STOPPED: "You stopped it.",
    TurnStatus.WAITING: "Waits for you.",
    TurnStatus.RUNNING: "Under way.",
}
FILE_SENTENCES = {"written": "Wrote {name}", "changed": "Updated {name}", "deleted": "Deleted {name}"}
NOTE_SENTENCES = {
    "written": ("Saved a memory.", "Saved {n} memories."),
    "changed": ("Corrected a memory.", "Corrected {n} memories."),
    "deleted": ("Deleted a memory.", "Deleted {n} memories."),
}
NOTE_FIELDS = ("note_id", "source_id", "target_id")
"""Fields of a call's input in which the model names a note."""
NO_USAGE = asdict(Usage())
FAILED = (TurnStatus.FAILED, TurnStatus.INTERRUPTED)


def outcome_lines(entry: dict[str, Any]) -> list[str]:
    """The sentences for one turn of the log; an answer that followed no tool call is `Answered.`"""
    lines = [*_errors(entry), *_files(entry), *_notes(entry)]
    done = [step for step in entry["steps"] if step["state"] == "ok"]
    if not lines and done:
        words = str(done[-1]["outcome"])
        lines = [words if words.endswith((".", "…", "?", "!")) else f"{words}."]
    if entry["error"] is not None:
        lines.append(entry["error"]["message"] or "It failed.")
    elif entry["state"] in STATES:
        lines.append(STATES[TurnStatus(entry["state"])])
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
            f" ({counted(step['lines'], 'line')}, {counted(step['characters'], 'character')})"
            if step
            else ""
        )
        yield f"{words}{size}."


def _notes(entry: dict[str, Any]) -> Iterator[str]:
    for action, (one, many) in NOTE_SENTENCES.items():
        number = sum(note["action"] == action for note in entry["memories"])
        if number:
            yield one if number == 1 else many.format(n=number)


def turns_begun(conversation: Conversation) -> QuerySet[Turn]:
    """The turns of the log, oldest first: all that have begun, replaced ones too."""
    rows = Turn.objects.owned_by(conversation.user_id).filter(conversation=conversation)
    return rows.exclude(state=TurnStatus.QUEUED).order_by("position")


def decision_log(conversation: Conversation) -> dict[str, Any]:
    """The whole log: `{conversation: {id, title, created_at, updated_at}, turns: [see log_turns], totals}`.

    `totals` are `{turns, calls, errors, recovered, lines, characters, duration_ms, usage}`.
    """
    turns = log_turns(conversation, turns_begun(conversation))
    steps = [step for turn in turns for step in turn["steps"]]
    usage: dict[str, Any] = defaultdict(int)
    for turn in turns:
        for name, value in turn["usage"].items():
            usage[name] += value
    return {
        "conversation": {
            "id": str(conversation.id),
            "title": str(conversation),
            "created_at": conversation.created_at.isoformat(),
            "updated_at": conversation.updated_at.isoformat(),
        },
        "turns": turns,
        "totals": {
            "turns": len(turns),
            "calls": len(steps),
            "errors": sum(step["state"] == "error" for step in steps),
            "recovered": sum(step["recovered_by"] is not None for step in steps),
            "lines": sum(turn["written"]["lines"] for turn in turns),
            "characters": sum(turn["written"]["characters"] for turn in turns),
            "duration_ms": sum(turn["duration_ms"] or 0 for turn in turns),
            "usage": dict(usage),
        },
    }


def log_turns(conversation: Conversation, turns: Iterable[Turn]) -> list[dict[str, Any]]:
    """These turns as the log has them.

    Each is `{turn, at, said, state, replaced_by, error, model, duration_ms, steps, answer, outcome, written, memories,
    files, usage}`. `steps` are the tool calls in order: `{id, at, round, tool, input, result, title, target, outcome,
    state, error_code, is_recovery, recovered_by, duration_ms, lines, characters}` with state `ok`, `error`, `not_run`
    or `open`. `outcome` is a list of sentences, `written` `{files, notes, lines, characters}`.
    """
    rows, user_id = list(turns), conversation.user_id
    ids = [turn.id for turn in rows]
    messages: dict[UUID | None, list[Message]] = defaultdict(list)
    said = (
        Message.objects.owned_by(user_id).filter(turn_id__in=ids, kind=MessageKind.TEXT).defer("blocks")
    )
    for message in said.order_by("position"):
        messages[message.turn_id].append(message)
    calls: dict[UUID | None, list[ToolCall]] = defaultdict(list)
    for call in _by_id(conversation, toolcalls_of(user_id=user_id, turn_ids=ids)):
        calls[call.turn_id].append(call)
    known = Known(user_id, [touch for turn in rows for touch in _touches(turn, calls[turn.id])])
    made = ModelCall.objects.owned_by(user_id).filter(ModelCall.BY_A_MODEL, turn_id__in=ids).order_by()
    totals: Iterable[Any] = made.values("turn_id").annotate(**{name: TOTALS[name] for name in NO_USAGE})
    usage = {
        each.pop("turn_id"): each | {"cost_usd": round(float(each["cost_usd"]), 6)} for each in totals
    }
    return [
        _turn(turn, messages[turn.id], calls[turn.id], known) | {"usage": usage.get(turn.id, NO_USAGE)}
        for turn in rows
    ]


def _by_id(conversation: Conversation, calls: list[ToolCall]) -> list[ToolCall]:
    """The calls with the ids of notes in their input where the model used short names, which mean nothing elsewhere."""
    given = [
        (call, field, name)
        for call in calls
        for field in NOTE_FIELDS
        if isinstance(name := call.input.get(field), str)
    ]
    notes = notes_by_handle(conversation.user_id, conversation.pk, [name for _, _, name in given])
    for call, field, name in given:
        if name in notes:
            call.input[field] = note_id(notes[name])
    return calls


def _touches(turn: Turn, calls: Sequence[ToolCall]) -> list[Touch]:
    surfaced: list[Touch] = [
        (parse_id(item["id"]), "surfaced")
        for item in turn.memories
        if "id" in item and "source" not in item
    ]
    return surfaced + [touch for call in calls for touch in touches_of(call)]


def _turn(
    turn: Turn, messages: Sequence[Message], calls: Sequence[ToolCall], known: Known
) -> dict[str, Any]:
    question = next((message for message in messages if message.role == Role.USER), None)
    answers = [message.text for message in messages if message.role == Role.ASSISTANT and message.text]
    made_good, recovering = recoveries(calls)
    touched = strongest(_touches(turn, calls))
    failed = turn.state in FAILED
    entry: dict[str, Any] = {
        "turn": str(turn.id),
        "at": (question.created_at if question else turn.created_at).isoformat(),
        "said": question.text if question else "",
        "state": turn.state,
        "replaced_by": str(question.superseded_by_id)
        if question and question.superseded_by_id
        else None,
        "error": {"code": turn.error_code, "message": turn.error_message} if failed else None,
        "model": turn.model,
        "duration_ms": milliseconds(turn.started_at, turn.ended_at),
        "steps": [
            _step(call, known)
            | {"is_recovery": call.id in recovering, "recovered_by": _id(made_good.get(call.id))}
            for call in calls
        ],
        "answer": answers[-1] if answers else "",
        "written": _written(calls),
        "memories": [known.note(key, act) for key, act in touched.items() if isinstance(key, UUID)],
        "files": [known.file(key, act) for key, act in touched.items() if isinstance(key, str)],
    }
    return entry | {"outcome": outcome_lines(entry)}


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


def milliseconds(start: datetime | None, end: datetime | None) -> int | None:
    return max(0, round((end - start).total_seconds() * 1000)) if start and end else None


def _id(value: UUID | None) -> str | None:
    return str(value) if value else None
