"""What the offline model reads and says: the user's newest words, the results of its own tool calls, and blocks of an answer."""

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

from apps.agent.offline import phrases
from apps.agent.offline.wording import Note, to_you
from apps.agent.tools.results import result_json

CONTEXT = "<context>"
NOTE_LINE = re.compile(r"^- \[(note-[0-9a-f-]{36})(?![^]\n]*for every conversation)", re.MULTILINE)
"""A note that was brought up for the message; one that stands before every conversation tells nothing about it."""


@dataclass(frozen=True, slots=True)
class Done:
    """A tool call of this turn with its result."""

    name: str
    input: dict[str, Any]
    result: str
    is_error: bool

    def json(self) -> Any:
        """The result as JSON, without the mark of others' words; None where it is none."""
        return result_json(self.result)


@dataclass(frozen=True, slots=True)
class Dialogue:
    """`words` are the newest ones of the user; `done` the tool calls since, in order; `tools` the offered names;
    `last_note_id` the note that was last saved or changed before these words; `surfaced` the notes that Izzy put beside
    them, `shown` those beside any words so far."""

    words: str
    done: list[Done] = field(default_factory=list)
    tools: frozenset[str] = frozenset()
    last_note_id: str = ""
    surfaced: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()

    @property
    def latest(self) -> Done | None:
        return self.done[-1] if self.done else None

    @property
    def notes(self) -> list[Note]:
        """The notes that this turn's newest search found, best first."""
        for call in reversed(self.done):
            if call.name == "memory_search" and isinstance(found := call.json(), list):
                return [
                    Note(
                        item["note_id"],
                        item.get("text", ""),
                        float(item.get("score") or 0),
                        bool(item.get("excerpt")),
                    )
                    for item in found
                    if isinstance(item, dict) and item.get("note_id")
                ]
        return []

    def answer(self, question: str) -> str:
        """The user's answer in this turn to the question that begins so, or ""."""
        asked = (call for call in self.done if call.name == "ask_user" and not call.is_error)
        return next(
            (call.result for call in asked if str(call.input.get("question")).startswith(question)), ""
        )


def read_dialogue(request: dict[str, Any]) -> Dialogue:
    """Takes a Messages API request apart."""
    messages = [(message["role"], _blocks(message["content"])) for message in request.get("messages", [])]
    start = max(
        (index for index, (role, blocks) in enumerate(messages) if role == "user" and _words(blocks)),
        default=-1,
    )
    words = _words(messages[start][1]) if start >= 0 else ""
    earlier = _done(messages[:start])
    saved = [
        _note_id(call)
        for call in earlier
        if call.name in ("memory_save", "memory_update") and not call.is_error
    ]
    tools = frozenset(tool.get("name", "") for tool in request.get("tools", []))
    beside = [_noted(blocks) for role, blocks in messages if role == "user"]
    surfaced = _noted(messages[start][1]) if start >= 0 else frozenset()
    done, last = _done(messages[start + 1 :]), saved[-1] if saved else ""
    return Dialogue(words, done, tools, last, surfaced, frozenset().union(*beside))


def calls_of(request: dict[str, Any]) -> list[Done]:
    """All tool calls of a request that have results, in order."""
    return _done([(message["role"], _blocks(message["content"])) for message in request.get("messages", [])])


def _blocks(content: str | list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _words(blocks: list[dict[str, Any]]) -> str:
    """The last text of a user message that is not the block of context put before it."""
    said = [block["text"] for block in blocks if block["type"] == "text"]
    own = [text for text in said if not text.startswith(CONTEXT)]
    return own[-1].strip() if own else ""


def _noted(blocks: list[dict[str, Any]]) -> frozenset[str]:
    """The ids of the notes in the block of context that stands before the user's words."""
    context = [
        block["text"] for block in blocks if block["type"] == "text" and block["text"].startswith(CONTEXT)
    ]
    return frozenset(NOTE_LINE.findall("\n".join(context)))


def _done(messages: list[tuple[str, list[dict[str, Any]]]]) -> list[Done]:
    calls: dict[str, dict[str, Any]] = {}
    done = []
    for _, blocks in messages:
        for block in blocks:
            if block["type"] == "tool_use":
                calls[block["id"]] = block
            elif block["type"] == "tool_result" and (call := calls.get(block["tool_use_id"])):
                text = _result_text(block.get("content", ""))
                done.append(Done(call["name"], call["input"], text, bool(block.get("is_error"))))
    return done


def _result_text(content: str | list[dict[str, Any]]) -> str:
    return "".join(block["text"] for block in _blocks(content) if block["type"] == "text")


def _note_id(call: Done) -> str:
    found = call.json()
    return str(found.get("note_id", "")) if isinstance(found, dict) else ""


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
