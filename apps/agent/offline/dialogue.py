"""The offline model's reading and speaking: the user's newest words, the results of its own tool calls, and blocks of an answer."""

import re
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from uuid import uuid4

from apps.agent.offline import phrases
from apps.agent.offline.wording import Note, to_you
from apps.agent.tools.results import UNTRUSTED, result_json
from apps.core.text import truncated

Blocks: TypeAlias = list[dict[str, Any]]

SEARCHED = 10
SHORT = 80
CONTEXT = "<context>"
NOTE_LINE = re.compile(r"^- n\d+(?: \((?!standing)[^()\n]*\))?: (.+)$", re.MULTILINE)
"""A note that was brought up for the message; one that stands before every conversation tells nothing about it."""
ESCAPED = re.compile(r"(?<=[nN\uff2e\uff4e])\\(?=\d)")


@dataclass(frozen=True, slots=True)
class Done:
    """A tool call of this turn with its result."""

    name: str
    input: dict[str, Any]
    result: str
    is_error: bool

    @property
    def text(self) -> str:
        """The result without the mark of others' words, which is meant for models."""
        return self.result.removeprefix(UNTRUSTED)

    def value(self, name: str) -> Any:
        """A field of a result that is a JSON object; None where there is none."""
        found = result_json(self.result)
        return found.get(name) if isinstance(found, dict) else None

    def items(self, name: str) -> Blocks:
        """The objects of a list in that field, or of a result that is a list itself."""
        found = result_json(self.result)
        listed = found.get(name) if isinstance(found, dict) else found
        return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


@dataclass(frozen=True, slots=True)
class Dialogue:
    """`words` are the newest ones of the user; `done` the tool calls since, in order; `tools` the offered names;
    `last_note_id` the note that was last saved or changed before these words; `surfaced` the texts of the notes that Izzy
    put beside them, `shown` of those beside any words so far."""

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
        searches = (call for call in reversed(self.done) if call.name == "memory_search")
        newest = next((call for call in searches if isinstance(result_json(call.result), list)), None)
        return [
            Note(
                item["note_id"],
                item.get("text", ""),
                float(item.get("score") or 0),
                bool(item.get("excerpt")),
            )
            for item in (newest.items("") if newest else [])
            if item.get("note_id")
        ]

    def answer(self, question: str) -> str:
        """The user's answer in this turn to the question that begins so, or ""."""
        asked = (call for call in self.done if call.name == "ask_user" and not call.is_error)
        return next(
            (call.result for call in asked if str(call.input.get("question")).startswith(question)), ""
        )


def read_dialogue(request: dict[str, Any]) -> Dialogue:
    """Takes a Messages API request apart."""
    messages = request.get("messages", [])
    spoken = [
        place for place, message in enumerate(messages) if message["role"] == "user" and _words(message)
    ]
    start = spoken[-1] if spoken else -1
    changes = [
        call
        for call in calls_of(messages[: max(start, 0)])
        if call.name in ("memory_save", "memory_update") and not call.is_error
    ]
    return Dialogue(
        words=_words(messages[start]) if spoken else "",
        done=calls_of(messages[start + 1 :]),
        tools=frozenset(tool.get("name", "") for tool in request.get("tools", [])),
        last_note_id=str(changes[-1].value("note_id") or "") if changes else "",
        surfaced=_noted([messages[start]] if spoken else []),
        shown=_noted(messages),
    )


def calls_of(messages: Blocks) -> list[Done]:
    """The tool calls of these messages that have results, in order."""
    calls: dict[str, dict[str, Any]] = {}
    done = []
    for block in (block for message in messages for block in content_of(message)):
        if block["type"] == "tool_use":
            calls[block["id"]] = block
        elif block["type"] == "tool_result" and (call := calls.get(block["tool_use_id"])):
            text = "".join(_texts({"content": block.get("content", "")}))
            done.append(Done(call["name"], call["input"], text, bool(block.get("is_error"))))
    return done


def content_of(message: dict[str, Any]) -> Blocks:
    """The blocks of a message, whichever way it is written."""
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _texts(message: dict[str, Any]) -> list[str]:
    return [block["text"] for block in content_of(message) if block["type"] == "text"]


def _words(message: dict[str, Any]) -> str:
    """The last text of a user message that is not the block of context put before it."""
    own = [text for text in _texts(message) if not text.startswith(CONTEXT)]
    return own[-1].strip() if own else ""


def _noted(messages: Blocks) -> frozenset[str]:
    """The texts of the notes in the blocks of context that stand before the user's words."""
    texts = [text for message in messages if message["role"] == "user" for text in _texts(message)]
    context = [text for text in texts if text.startswith(CONTEXT)]
    return frozenset(ESCAPED.sub("", line) for line in NOTE_LINE.findall("\n".join(context)))


def stands_in(note: Note, texts: frozenset[str]) -> bool:
    """Whether a note, or a part of it that is shortened with an ellipsis, is among the texts of a context block."""
    whole = " ".join(note.text.split())
    return whole in texts or any(text.endswith("…") and text[:-1] in whole for text in texts)


def say(text: str) -> Blocks:
    return [{"type": "text", "text": text}]


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_offline_{uuid4().hex}", "name": name, "input": arguments}


def use(dialogue: Dialogue, name: str, arguments: dict[str, Any]) -> Blocks:
    """A call of a tool, or a sentence that says why there is none."""
    if name in dialogue.tools:
        return [call(name, arguments)]
    return say(
        phrases.NO_MEMORY if name.startswith("memory_") or name == "deep_memory" else phrases.NO_TOOL
    )


def search(dialogue: Dialogue, query: str, top_k: int = SEARCHED) -> Blocks:
    return use(dialogue, "memory_search", {"query": query, "top_k": top_k})


def bullets(notes: list[Note]) -> str:
    return "\n".join(f"- {to_you(note.text)}" for note in notes)


def short(text: str, limit: int = SHORT) -> str:
    return truncated(text, limit)


def fenced(text: str) -> str:
    """The text as a block of code that it cannot end."""
    fence = "`" * (2 + max(map(len, re.findall("`+", text)), default=1))
    return f"{fence}text\n{text}\n{fence}"
