"""Helpers of the offline model's rules: saying something, calling a tool, quoting notes."""

from typing import Any, TypeAlias
from uuid import uuid4

from apps.agent.offline import phrases
from apps.agent.offline.dialogue import Dialogue
from apps.agent.offline.matching import Note
from apps.agent.offline.wording import to_you

Blocks: TypeAlias = list[dict[str, Any]]

SEARCHED = 10
SHORT = 80


def say(text: str) -> Blocks:
    return [{"type": "text", "text": text}]


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_offline_{uuid4().hex}", "name": name, "input": arguments}


def use(dialogue: Dialogue, name: str, arguments: dict[str, Any]) -> Blocks:
    """A call of a tool, or a sentence that says why there is none."""
    if name in dialogue.tools:
        return [call(name, arguments)]
    return say(phrases.NO_MEMORY if name.startswith("memory_") or name == "deep_memory" else phrases.NO_TOOL)


def search(dialogue: Dialogue, query: str, top_k: int = SEARCHED) -> Blocks:
    return use(dialogue, "memory_search", {"query": query, "top_k": top_k})


def bullets(notes: list[Note]) -> str:
    return "\n".join(f"- {to_you(note.text)}" for note in notes)


def short(text: str, limit: int = SHORT) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"
