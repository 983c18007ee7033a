"""Reads conversations that were held elsewhere: JSON Lines, a JSON list, or plain text such as `user: hello`.

Nothing is sent from here. What a message becomes is what `POST /ingest/` takes, and each gets an `external_id` of its own, so
that a file that is read again adds nothing, and one that has grown only what is new.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from izzy_cli.errors import Problem

Format = Literal["auto", "jsonl", "json", "text"]

ROLES = {
    **dict.fromkeys(("user", "human", "me", "you"), "user"),
    **dict.fromkeys(
        ("assistant", "ai", "bot", "model", "izzy", "claude", "chatgpt", "gpt"), "assistant"
    ),
    **{name: name for name in ("system", "developer", "tool", "function")},
}
"""Names of roles, in lower case, and what Izzy calls them."""
UNHEARD = frozenset({"system", "developer", "tool", "function"})
"""Roles of messages that nobody said: Izzy counts them and does not keep them."""
KEPT = ("role", "speaker", "content", "external_id", "created_at")
BATCH_MESSAGES, BATCH_CHARS = 250, 1_000_000
_TURN = re.compile(r"\s*(?:\*\*)?([^\W\d][\w .'’-]{0,39}?)(?:\*\*)?\s*:(?:\*\*)?(?:\s+|$)(.*)")


@dataclass(frozen=True, slots=True)
class Message:
    """A message as REST takes it, and where it stands."""

    place: str
    session: str
    body: dict[str, Any]


@dataclass
class Batch:
    """Messages of one session that are sent together."""

    session: str
    messages: list[Message] = field(default_factory=list)
    chars: int = 0
    after_tools: bool = False  # a tool spoke in an earlier batch of the session

    def body(self) -> list[dict[str, Any]]:
        """An assistant's message after tool output counts as others' words, also where the output came in the batch before."""
        mark = [{"role": "tool"}] if self.after_tools else []
        return [*mark, *(message.body for message in self.messages)]


def messages_of(text: str, place: str, session: str, kind: Format) -> list[Message]:
    """The messages of one file. Raises Problem with file and line where something in it is none."""
    kind = _format(text) if kind == "auto" else kind
    if kind == "text":
        found = _plain(text, place)
    elif kind == "json":
        found = _listed(_json(text, place), place)
    else:
        found = (
            (f"{place}:{number}", _json(line, f"{place}:{number}"))
            for number, line in enumerate(text.split("\n"), 1)
            if line.strip()
        )
    read = [_message(entry, where, session) for where, entry in found]
    if not read:
        raise Problem(f"There are no messages in {place}.")
    return _named(read)


def batches(messages: Iterable[Message]) -> Iterator[Batch]:
    """The messages in their order, by session, in pieces that the server takes."""
    open_batches: dict[str, Batch] = {}
    tainted: set[str] = set()
    for message in messages:
        batch = open_batches.get(message.session)
        size = len(str(message.body.get("content", "")))
        if batch and (len(batch.messages) >= BATCH_MESSAGES or batch.chars + size > BATCH_CHARS):
            yield open_batches.pop(message.session)
            batch = None
        if batch is None:
            batch = Batch(message.session, after_tools=message.session in tainted)
            open_batches[message.session] = batch
        batch.messages.append(message)
        batch.chars += size
        if message.body.get("role") in {"tool", "function"}:
            tainted.add(message.session)
    yield from open_batches.values()


def _format(text: str) -> Format:
    start = text.lstrip()
    if start.startswith("["):
        return "json"
    if not start.startswith("{"):
        return "text"
    try:
        json.loads(start.partition("\n")[0])
    except ValueError:
        return "json"  # an object over several lines
    return "json" if "\n" not in start.strip() and '"messages"' in start else "jsonl"


def _json(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        where = (
            f" (line {error.lineno})"
            if isinstance(error, json.JSONDecodeError) and error.lineno > 1
            else ""
        )
        raise Problem(f"{place}{where} is not valid JSON.") from None


def _listed(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        value = value["messages"]
    entries = value if isinstance(value, list) else [value]
    return ((f"{place}, message {number}", entry) for number, entry in enumerate(entries, 1))


def _plain(text: str, place: str) -> Iterator[tuple[str, Any]]:
    """Turns begin with a name and a colon: with the name of a role, where one occurs, else with any name."""
    lines = text.splitlines()
    turns = [match if (match := _TURN.match(line)) else None for line in lines]
    roles_only = any(
        match and match[1].strip().removesuffix(" said").lower() in ROLES for match in turns
    )
    begun: tuple[str, dict[str, Any]] | None = None
    for number, (line, match) in enumerate(zip(lines, turns, strict=True), 1):
        name = match[1].strip().removesuffix(" said") if match else ""
        if match and (not roles_only or name.lower() in ROLES):
            if begun:
                yield begun
            begun = (f"{place}:{number}", _spoken(name, match[2]))
        elif begun:
            begun[1]["content"] += f"\n{line}"
        elif line.strip():
            raise Problem(
                f"{place}:{number}: a message begins with a name and a colon, such as “user: hello”."
            )
    if begun:
        yield begun


def _spoken(name: str, text: str) -> dict[str, Any]:
    role = ROLES.get(name.lower())
    return {"role": role, "content": text} if role else {"speaker": name, "content": text}


def _message(entry: Any, place: str, session: str) -> Message:
    if not isinstance(entry, dict):
        raise Problem(f"{place} is no message: it must be an object with role and content.")
    body = {name: entry[name] for name in KEPT if entry.get(name) not in (None, "")}
    role = str(body.get("role", "")).lower()
    if role:
        body["role"] = ROLES.get(role, role)
    elif "speaker" not in body:
        raise Problem(f"{place}: a message needs a role (user or assistant) or a speaker.")
    content, only_tools = _content(entry.get("content", entry.get("text")))
    if only_tools:
        body = {"role": "tool"}  # what a program answered stands in a message of the user's there
    elif body.get("role") not in UNHEARD:
        if not content.strip():
            raise Problem(f"{place}: the message has no content.")
        body["content"] = content.strip()
    else:
        body = {"role": body["role"]}
    if isinstance(moment := body.get("created_at"), int | float):
        body["created_at"] = _time(moment, place)
    if "external_id" in body:
        body["external_id"] = str(body["external_id"])
    named = entry.get("session")
    return Message(place, named if isinstance(named, str) and named else session, body)


def _content(value: Any) -> tuple[str, bool]:
    """The text of a message, which may be a list of blocks, and whether it is only what tools answered or were asked."""
    if isinstance(value, str):
        return value, False
    if not isinstance(value, list):
        return "", False
    texts = [
        block if isinstance(block, str) else str(block.get("text", ""))
        for block in value
        if isinstance(block, str)
        or (
            isinstance(block, dict)
            and block.get("type", "text") in {"text", "input_text", "output_text"}
        )
    ]
    kinds = {block.get("type") for block in value if isinstance(block, dict)}
    text = "\n\n".join(filter(str.strip, texts))
    return text, not text and bool(kinds & {"tool_result", "tool_use", "tool_call"})


def _time(seconds: float, place: str) -> str:
    try:
        return datetime.fromtimestamp(seconds / 1000 if seconds > 1e11 else seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        raise Problem(f"{place}: created_at is no time.") from None


def _named(messages: list[Message]) -> list[Message]:
    """Gives each message that has none an external id: of its session, speaker and words, and the how manieth of these it is."""
    counts: Counter[str] = Counter()
    for message in messages:
        body = message.body
        if "content" not in body or "external_id" in body:
            continue
        who = f"{body.get('role', '')}\0{body.get('speaker', '')}"
        digest = hashlib.sha256(
            f"{message.session}\0{who}\0{body['content']}".encode(errors="replace")
        ).hexdigest()
        counts[digest] += 1
        body["external_id"] = f"izzy-cli-{digest[:40]}-{counts[digest]}"
    return messages
