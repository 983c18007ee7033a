"""A reader of any file gives records that the importer can rely on, or refuses the file with a sentence."""

import json
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apps.core.errors import InvalidInput, TooLarge
from apps.memory.transfer.records import Upload, readers

from . import test_reading_claude, test_reading_memories, test_reading_talk
from .chatgpt_sample import TALK
from .reading import as_bytes, check, zipped

WORDS = {
    "chatgpt": "mapping current_node message author role content content_type parts text user assistant metadata recipient bio "
    "parent children id conversation_id title create_time update_time is_do_not_remember model_editable_context model_set_context",
    "claude": "uuid name chat_messages text content sender human assistant created_at parent_message_uuid attachments type "
    "extracted_content file_name conversations_memory project_memories memory_files path account_uuid docs filename "
    "prompt_template description messages role contentBlocks current_leaf_message_uuid",
    "mcp-memory": "type entity relation name entityType observations from to relationType entities relations contents observation",
    "mem0": "results memory id metadata categories created_at next count relations source target relationship expiration_date",
    "openmemory": "memories categories apps content state id category_ids memory_categories memory_id category_id metadata",
    "letta": "agents blocks label value id block_ids messages role user assistant content text tool_calls function name "
    "send_message arguments message type files file_name tools core_memory created_at source_code",
    "open-webui": "chat history messages currentId parentId childrenIds role user assistant content timestamp title id user_id chats",
    "claude-code": "type user assistant summary message role content text uuid parentUuid sessionId timestamp isSidechain isMeta",
    "json": "memories content text tags id created_at enabled timestamps title",
}
ODD = [
    "",
    "\x00",
    "\ud800",
    "﻿",
    "a" * 300,
    "../../etc",
    "1e400",
    "2024-13-45",
    "# x",
    "[[a]]",
    "</document>",
    "{}",
    '{"type":1}',
]
NUMBERS = st.one_of(
    st.integers(),
    st.floats(),
    st.sampled_from([0, -1, 1e18, 10**30, 1700000000, 1700000000000, -(10**11)]),
)


@cache
def values(words: str) -> st.SearchStrategy[Any]:
    """Made once: making one takes longer than drawing from it."""
    named = st.sampled_from(words.split())
    texts = st.one_of(named, st.sampled_from(ODD), st.text(max_size=12))
    plain = st.one_of(st.none(), st.booleans(), NUMBERS, texts)
    return st.recursive(
        plain,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(named, inner, max_size=6)),
        max_leaves=25,
    )


@cache
def entries_of(name: str) -> st.SearchStrategy[list[dict[str, Any]]]:
    keys = st.sampled_from(WORDS[name].split())
    return st.lists(st.dictionaries(keys, values(WORDS[name]), max_size=7), min_size=1, max_size=3)


def attempt(name: str, upload: Upload) -> None:
    """Reads to the end; anything but InvalidInput and TooLarge is a fault of the reader's."""
    reader = next(reader for reader in readers() if reader.name == name)
    reader.matches(upload)
    with suppress(InvalidInput, TooLarge):
        for record in reader.read(upload):
            check(record)


@pytest.mark.parametrize("name", WORDS)
@settings(deadline=None, max_examples=50)
@given(data=st.data())
def test_it_survives_json_of_any_shape(name: str, data: st.DataObject) -> None:
    entries = data.draw(entries_of(name))
    shape = data.draw(st.sampled_from(["list", "first", "lines", "string", "cut", "zip"]))
    text = json.dumps(entries if shape in {"list", "zip", "cut"} else entries[0])
    content: object = text
    if shape == "lines":
        content = "\n".join(map(json.dumps, entries))
    elif shape == "string":
        content = json.dumps(text)
    elif shape == "cut":
        content = text[: data.draw(st.integers(1, len(text)))]
    elif shape == "zip":
        content = zipped(
            {"conversations.json": text, "memories/a.json": json.dumps(entries[0]), "MEMORY.md": text}
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload"
        path.write_bytes(as_bytes(content))
        attempt(name, Upload(path, "export.zip" if shape == "zip" else "export.json"))


LINES = [
    *(
        "---",
        "id: a1",
        "type: fact",
        "tags: [a, [b, {c: d}]]",
        "title: a: b",
        "created: 2024-13-45",
        "date: 0001-01-01",
        "- [x] y",
    ),
    *(
        "- [cat] said #tag (why)",
        "- rel [[Other]]",
        "[[MEMORY|alias]] ![[p.png]]",
        "```",
        "# Head",
        "**Bold:**",
        "§",
        "1. [2024-01-01] - t",
    ),
    *(
        "content,tags",
        '"open',
        'a;b;"c',
        "x\ty",
        "[unknown] - it",
        "\x00",
        "&a [*a]",
        "name: n",
        "description: d",
        "1",
        "  more",
        "Likes:",
    ),
]


@pytest.mark.parametrize("name", ["markdown", "csv", "text", "hermes", "claude-code", "mem0"])
@settings(deadline=None, max_examples=50)
@given(
    lines=st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=20)), max_size=14),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-16-le"]),
    packed=st.booleans(),
)
def test_it_survives_text_of_any_shape(name: str, lines: list[str], encoding: str, packed: bool) -> None:
    text = "\n".join(lines).encode(encoding, "ignore")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload"
        path.write_bytes(
            zipped({"a/MEMORY.md": text, "a/b.md": text, "c.csv": text}) if packed else text
        )
        attempt(name, Upload(path, "notes.zip" if packed else "MEMORY.md"))


@pytest.mark.parametrize("name", [*WORDS, "markdown", "csv", "text", "hermes"])
@settings(deadline=None, max_examples=20)
@given(
    content=st.binary(max_size=200),
    head=st.sampled_from([b"", b"PK\x03\x04", b"\x1f\x8b", b"\xff\xfe", b"[", b'{"a":']),
)
def test_it_survives_any_bytes(name: str, content: bytes, head: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload"
        path.write_bytes(head + content)
        attempt(name, Upload(path, "export"))


REAL: dict[str, Any] = {
    "chatgpt": [TALK],
    "claude": [test_reading_claude.BRANCHED],
    "mcp-memory": test_reading_memories.GRAPH,
    "mem0": {"results": [test_reading_memories.MEM0], "relations": [{"source": "a", "target": "b"}]},
    "openmemory": test_reading_memories.backup(),
    "letta": test_reading_memories.agent_file(),
    "open-webui": [test_reading_talk.CHAT],
    "claude-code": test_reading_talk.TRANSCRIPT,
}


def places(value: object) -> list[tuple[Any, Any]]:
    """(container, key or index) of everything within a JSON value."""
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending:
        inner = pending.pop()
        pairs = (
            inner.items()
            if isinstance(inner, dict)
            else enumerate(inner)
            if isinstance(inner, list)
            else []
        )
        for key, each in pairs:
            found.append((inner, key))
            pending.append(each)
    return found


@pytest.mark.parametrize("name", REAL)
@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_it_survives_a_real_file_with_odd_values_in_it(name: str, data: st.DataObject) -> None:
    content = json.loads(json.dumps(REAL[name]))
    for _ in range(data.draw(st.integers(1, 4))):
        if not (found := places(content)):
            break
        container, key = data.draw(st.sampled_from(found))
        if data.draw(st.booleans()):
            container[key] = data.draw(values("text user"))
        elif isinstance(container, dict):
            del container[key]
    lines = isinstance(content, list) and name in {"mcp-memory", "claude-code"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "upload"
        path.write_bytes(as_bytes("\n".join(map(json.dumps, content)) if lines else json.dumps(content)))
        attempt(name, Upload(path, "export.json"))


MANY = 1_000_000
"""Signs that a reader which looked at them again for each of them would need hours for."""


def said(text: str) -> list[Any]:
    """A conversation of ChatGPT's in which somebody said this."""
    message = {"id": "m", "author": {"role": "assistant"}, "content": {"parts": [text]}}
    return [{"id": "c", "title": "", "current_node": "n", "mapping": {"n": {"message": message}}}]


def chatted(text: str) -> list[Any]:
    """A chat of Open WebUI's in which somebody said this."""
    messages = [{"id": "m", "role": "assistant", "content": text}]
    return [{"id": "c", "user_id": "u", "title": "", "chat": {"messages": messages}}]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("markdown", "`" * MANY),
        ("markdown", "- [category] text\n" * (MANY // 16)),
        ("markdown", "- knows [[Ann]]\n" * (MANY // 16)),
        ("claude-code", "[" * MANY),
        ("chatgpt", said("\ue200" * MANY)),
        ("chatgpt", said(f"a{' ' * MANY}a")),
        ("open-webui", chatted("<details " * (MANY // 9))),
        ("json", '["a' + '\\"' * MANY + '"]'),
    ],
    ids=lambda value: str(value)[:20],
)
def test_many_equal_signs_are_read_at_once(name: str, content: object, tmp_path: Path) -> None:
    path = tmp_path / "MEMORY.md"
    path.write_bytes(as_bytes(content))
    attempt(name, Upload(path, path.name))


@pytest.mark.parametrize(
    "front", ["[" * 30_000, "- " * 30_000, "".join(f"{' ' * n}a:\n" for n in range(300))]
)
def test_front_matter_that_is_nested_deeply_does_not_end_the_process(front: str, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(f"---\n{front}\n---\nThe text.\n")
    attempt("markdown", Upload(path, path.name))
