"""The offline model as builder: writes, tries and hands in a tool that it knows by heart, one step in each round."""

import re
from typing import Any

from apps.agent.offline.dialogue import Done, calls_of
from apps.agent.offline.rehearsals.pieces import Piece, piece_named
from apps.agent.offline.speech import Blocks, call, say

NAME = re.compile(r"^Name: (\w+)$", re.MULTILINE)
CHANGES = "Offline I only build what I know by heart and cannot change it. Connect a language model for that."
UNKNOWN = "Offline I only build what I know by heart, and {name} is not among it. Connect a language model for that."
FAILED = "The {step} did not work: {reason}"
STEPS = ("write_file", "run_code", "register_capability")
TRIES = 3


def is_builder(request: dict[str, Any]) -> bool:
    """Whether the request is the builder's."""
    return any(tool.get("name") == "register_capability" for tool in request.get("tools", []))


def build(request: dict[str, Any]) -> Blocks:
    """The next step of the build."""
    brief = _brief(request)
    name = match[1] if (match := NAME.search(brief)) else ""
    piece = piece_named(name)
    if "What to do differently:" in brief or "It failed on this input" in brief:
        return say(CHANGES)
    if piece is None:
        return say(UNKNOWN.format(name=name or "this"))
    return _step(piece, calls_of(request))


def _step(piece: Piece, done: list[Done]) -> Blocks:
    reached = {call.name for call in done if not call.is_error}
    step = next((name for name in STEPS if name not in reached), STEPS[-1])
    failed = [call for call in done if call.name == step and call.is_error]
    if len(failed) >= TRIES:
        return say(FAILED.format(step=step.replace("_", " "), reason=failed[-1].result))
    if step == "write_file":
        return [
            *say(f"I write the {piece.title} first."),
            call("report_progress", {"text": f"Writing the {piece.title}"}),
            call("write_file", {"path": "main.py", "content": piece.source}),
        ]
    if step == "run_code":
        return [*say("Now I try it on good and bad input."), call("run_code", {"code": piece.trial})]
    fields = {
        "description": piece.description,
        "input_schema": piece.input_schema,
        "examples": piece.examples,
    }
    return [*say("It works, so I hand it in."), call("register_capability", fields)]


def _brief(request: dict[str, Any]) -> str:
    content = request["messages"][0]["content"]
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")
