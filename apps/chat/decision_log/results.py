"""A turn's results, as a few sentences for the user."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

from apps.chat.decision_log.words import command_of, counted
from apps.chat.models import TurnState

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
