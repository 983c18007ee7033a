"""Messages of a foreign conversation: the branch of its tree that counts, and messages as Izzy takes them."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Literal

from ..records import ForeignConversation, ForeignMessage, Skipped
from .fields import MAX_NAME_CHARS, key_of, name_of, pieces, text_of

MAX_MESSAGE_CHARS = 100_000
_REASONING = re.compile(
    r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)|<details\b[^<>]*\btype=\"[^\"<>]*\"[^<>]*>.*?(?:</details>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
NOBODY_SPOKE = "Nothing was said in it."

Role = Literal["user", "assistant"]


def branch(leaf: str | None, parent: Callable[[str], str | None]) -> list[str]:
    """The nodes from the root to a leaf, each once even where their parents go in a circle."""
    found: list[str] = []
    seen: set[str] = set()
    node = leaf
    while node is not None and node not in seen:
        seen.add(node)
        found.append(node)
        node = parent(node)
    return found[::-1]


def branch_and_rest(
    leaf: str | None,
    parents: Mapping[str, str | None],
    said: Mapping[str, Sequence[ForeignMessage]],
) -> tuple[list[ForeignMessage], frozenset[str]]:
    """Of what was said at each node, the messages of the branch that ends with the leaf, and the keys of all others."""
    shown = [message for node in branch(leaf, parents.get) for message in said[node]]
    keys = (message.key for messages in said.values() for message in messages)
    return shown, frozenset(keys).difference(message.key for message in shown)


def newest_leaf(parents: Mapping[str, str | None], times: Mapping[str, datetime | None]) -> str | None:
    """The node without children that is youngest; of equally old ones, or without times, the last."""
    inner = set(parents.values())
    leaves = [node for node in parents if node not in inner] or list(parents)
    known = [
        (stamp.timestamp() if (stamp := times.get(node)) else -1.0, place)
        for place, node in enumerate(leaves)
    ]
    return leaves[max(known)[1]] if leaves else None


def without_reasoning(text: str) -> str:
    """An assistant's text without the elements in which programs keep its reasoning and tool calls."""
    return _REASONING.sub("", text).strip()


def as_document(name: object, content: str) -> str:
    """The text of an attached file, marked as what it is: the sender's words it is not."""
    called = name_of(name).replace('"', "'") or "attachment"
    inside = content.replace(
        "</document", "<\u200b/document"
    )  # a zero-width space: what is inside does not end it
    return f'<document name="{called}">\n{inside}\n</document>'


def messages_of(
    key: object, role: Role, content: str, created_at: datetime | None, speaker: str = ""
) -> list[ForeignMessage]:
    """The message, none where it is empty, several where it is longer than a message may be."""
    base = key_of(key, role, str(created_at), content)
    return [
        ForeignMessage(
            key=f"{base}#{number + 1}" if number else base,
            role=role,
            content=part,
            created_at=created_at,
            speaker=speaker,
        )
        for number, part in enumerate(pieces(content, MAX_MESSAGE_CHARS))
    ]


def conversation(
    place: str,
    key: str,
    title: object,
    messages: Iterable[ForeignMessage],
    created_at: datetime | None = None,
    updated_at: datetime | None = None,
    left: Collection[str] = (),
) -> ForeignConversation | Skipped:
    """The conversation, begun when its first message was where it does not say when; skipped where nothing was said in it.
    `updated_at` is the time of its last change where the file has it: what was said later is one as well."""
    said = list(messages)
    if not said:
        return Skipped(place, NOBODY_SPOKE)
    times = [message.created_at for message in said if message.created_at]
    started = created_at or min(times, default=updated_at)
    return ForeignConversation(
        place=place,
        key=key,
        messages=said,
        left=left,
        title=name_of(title)[:MAX_NAME_CHARS] if text_of(title) else "",
        created_at=started,
        updated_at=max([updated_at, *times]) if updated_at else None,
    )
