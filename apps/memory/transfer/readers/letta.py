"""Letta's agent files (.af): blocks of memory, files, and what was said. Tools are named in the report and never run."""

import json
import re
from collections.abc import Iterator
from typing import Any

from apps.core.errors import InvalidInput

from ..records import ForeignMessage, Read, Reader, Skipped, Upload, content_key
from .archives import Document, documents
from .encoding import json_whole, sketch, sketches
from .fields import entries_in, fields_in, first_moment, first_text, joined, name_of, path_part, text_of
from .files import distinct, files_of
from .lists import memory_of, noted_paragraphs
from .talk import conversation, messages_of

FOLDER = "/memories/letta"
_ABOUT_USER = re.compile(r"(^|[/_ -])(human|user)([/_ -]|$)", re.IGNORECASE)
_ELEMENT = re.compile(r"<system-(?:reminder|alert)>.*?(?:</system-(?:reminder|alert)>|\Z)", re.DOTALL)
_NO_TALK = {"heartbeat", "login", "system_alert", "system", "bootup"}


def matches(upload: Upload) -> bool:
    def fits(keys: frozenset[str]) -> bool:
        new = (
            keys >= {"agents", "blocks"}
            or keys >= {"agents", "tools"}
            or "agents.item.in_context_message_ids" in keys
        )
        return new or "core_memory" in keys or (keys >= {"agent_type", "messages"})

    return any(map(fits, sketches(upload).values()))


def read(upload: Upload) -> Iterator[Read]:
    return distinct(_read(upload))


def _read(upload: Upload) -> Iterator[Read]:
    understood = False
    for document in documents(upload):
        if not sketch(document):
            continue
        whole = fields_in(json_whole(document))
        if (
            entries_in(whole.get("agents"))
            or whole.get("blocks")
            or whole.get("core_memory")
            or whole.get("messages")
        ):
            understood = True
            yield from _agent_file(document, whole)
    if not understood:
        raise InvalidInput("This file holds no agent in the form that Letta writes.")


def _agent_file(document: Document, whole: dict[str, Any]) -> Iterator[Read]:
    agents = [agent for agent in entries_in(whole.get("agents")) if isinstance(agent, dict)] or [whole]
    owners = {text_of(block): agent for agent in agents for block in entries_in(agent.get("block_ids"))}
    listed = entries_in(whole.get("blocks")) or entries_in(whole.get("core_memory"))
    for block in listed:
        fields = fields_in(block)
        owner = owners.get(text_of(fields.get("id"))) or agents[0]
        yield from _block(document, _name(owner), fields)
    for agent in agents:
        for block in [
            *entries_in(agent.get("memory_blocks")),
            *(entries_in(agent.get("core_memory")) if agent is not whole else []),
        ]:
            yield from _block(document, _name(agent), fields_in(block))
        yield _conversation(document, agent, whole)
    folder = f"{FOLDER}/{path_part(_name(agents[0]))}/files"
    for number, file in enumerate(entries_in(whole.get("files")), start=1):
        fields = fields_in(file)
        name = first_text(fields, "original_file_name", "file_name")
        place = f"{document.name}, file {name or number}"
        if content := first_text(fields, "content"):
            created = first_moment(fields, "file_creation_date", "created_at")
            yield from files_of(place, f"{folder}/{path_part(name, f'file {number}')}", content, created)
        else:
            yield Skipped(place, "The file's text is not in the export.")
    for name in ("passages", "archival_memory", "archives"):
        for number, passage in enumerate(entries_in(whole.get(name)), start=1):
            yield from memory_of(f"{document.name}, {name} {number}", passage)
    yield from _left_out(document, whole)


def _name(agent: dict[str, Any]) -> str:
    return name_of(agent.get("name")) or "agent"


def _block(document: Document, agent: str, block: dict[str, Any]) -> Iterator[Read]:
    """The agent's blocks about its user as notes, its other blocks as files."""
    label, value = first_text(block, "label", "name") or "block", text_of(block.get("value"))
    place = f"{document.name}, block {name_of(label)}"
    if not value:
        yield Skipped(place, "The block is empty.")
    elif _ABOUT_USER.search(label):
        yield from noted_paragraphs(place, value, tags=["letta", label.rpartition("/")[2]])
    else:
        parts = [path_part(part) for part in label.split("/") if part.strip(" .")][-10:] or ["block"]
        path = "/".join([FOLDER, path_part(agent), *parts])
        updated = first_moment(block, "updated_at", "created_at")
        yield from files_of(place, path if path.endswith(".md") else f"{path}.md", value, None, updated)


def _conversation(document: Document, agent: dict[str, Any], whole: dict[str, Any]) -> Read:
    listed = [message for message in entries_in(agent.get("messages")) if isinstance(message, dict)]
    by_tool = any(name == "send_message" for message in listed for name, _ in _calls(message))
    said: list[ForeignMessage] = []
    for message in listed:
        role = text_of(message.get("role"))
        created = first_moment(message, "created_at", "date")
        if role == "user":
            words = _user_words(message)
        elif role == "assistant" and by_tool:
            words = joined(
                [
                    text_of(arguments.get("message"))
                    for name, arguments in _calls(message)
                    if name == "send_message"
                ]
            )
        elif role == "assistant":
            words = _content(message)
        else:
            continue
        key = content_key(role, str(created), words)  # ids of an agent file are made anew each time
        said += messages_of(key, "user" if role == "user" else "assistant", words, created)
    name = _name(agent)
    start = said[0].key if said else ""
    place = f"{document.name}, agent {name}"
    return conversation(place, content_key(name, start), name, said)


def _content(message: dict[str, Any]) -> str:
    content = message.get("content", message.get("text"))
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [
        text_of(block.get("text"))
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text"
    ]
    return joined(texts)


def _user_words(message: dict[str, Any]) -> str:
    """The user's words, out of the JSON in which older agents wrapped it; "" for what the program said in their place."""
    text = _ELEMENT.sub("", _content(message)).strip()
    if not text.startswith("{"):
        return text
    try:
        wrapped = fields_in(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return text
    if "type" not in wrapped or not isinstance(wrapped.get("message", ""), str):
        return text
    return "" if text_of(wrapped["type"]) in _NO_TALK else text_of(wrapped.get("message"))


def _calls(message: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The tools that a message calls: (name, arguments)."""
    found = []
    for call in [*entries_in(message.get("tool_calls")), *filter(None, [message.get("tool_call")])]:
        function = fields_in(fields_in(call).get("function")) or fields_in(call)
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            try:
                arguments = json.loads(arguments, strict=False)
            except (ValueError, RecursionError):
                arguments = {}
        found.append((text_of(function.get("name")), fields_in(arguments)))
    return found


def _left_out(document: Document, whole: dict[str, Any]) -> Iterator[Read]:
    for what, plural in (("tool", "tools"), ("MCP server", "mcp_servers"), ("skill", "skills")):
        for number, entry in enumerate(entries_in(whole.get(plural)), start=1):
            fields = fields_in(entry)
            name = first_text(fields, "name", "server_name") or str(number)
            lines = len(text_of(fields.get("source_code")).splitlines())
            size = f" ({lines} lines of {first_text(fields, 'source_type') or 'code'})" if lines else ""
            yield Skipped(
                f"{document.name}, {what} {name_of(name)}",
                f"A {what} of the agent{size}: Izzy neither takes nor runs what another program wrote. Ask for it in a chat.",
            )


reader = Reader(
    name="letta",
    title="Letta (agent file)",
    matches=matches,
    read=read,
    help="The .af file that Letta's export of an agent gives.",
    rank=22,
)
