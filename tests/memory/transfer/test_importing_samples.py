"""A file of each other program goes in, and in once more: then there is nothing new."""

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest

from apps.accounts.models import User
from apps.chat.conversations.foreign import OLDER
from apps.chat.models import Message, Turn
from apps.memory.models import Memory, MemoryEdge, MemoryFile
from apps.search.documents import Source
from apps.search.selectors import passages_saying
from tests.conftest import make_user

from . import test_reading_claude as claude
from . import test_reading_lists as lists
from . import test_reading_markdown as markdown
from . import test_reading_memories as memories
from . import test_reading_talk as talk
from .chatgpt_sample import ROOT, TALK, chat, node, tree
from .conftest import TakeIn, counts, exported
from .reading import as_bytes, json_lines, zipped

pytestmark = pytest.mark.django_db(transaction=True)

MEM0_BLOCK = (
    "---\nid: m1\ncreated_at: 2024-01-15T10:00:00Z\ntype: fact\nconfidence: 0.9\n---\nUse ports.\n"
)
FILES: dict[str, tuple[str, object, dict[str, int]]] = {
    "chatgpt": ("chatgpt.zip", zipped({"conversations-000.json": [TALK], "export_manifest.json": {}}), {"note": 1, "conversation": 1, "message": 5}),
    "claude": ("claude.zip", zipped(claude.OLD), {"note": 5, "file": 5, "conversation": 2, "message": 5}),
    "claude parts": ("all.zip", zipped({name: zipped(files) for name, files in claude.PARTS.items()}), {"note": 5, "file": 5, "conversation": 2, "message": 5}),
    "claude-code": ("project.zip", zipped(talk.FOLDER), {"note": 3, "edge": 1, "conversation": 1, "message": 4}),
    "mcp-memory": ("memory.jsonl", json_lines(*memories.GRAPH), {"note": 8, "edge": 5}),
    "mem0": ("mem0.json", {"results": [memories.MEM0]}, {"note": 1}),
    "mem0 markdown": ("mem0-export.md", MEM0_BLOCK, {"note": 1}),
    "openmemory": ("backup.zip", zipped({"memories.json": memories.backup()}), {"note": 2}),
    "letta": ("sam.af", memories.agent_file(), {"note": 2, "file": 2, "conversation": 1, "message": 2}),
    "open-webui": ("chats.json", [talk.CHAT], {"conversation": 1, "message": 4}),
    "hermes": ("MEMORY.md", "Repo uses uv\n§\nCI runs on push", {"note": 2}),
    "markdown": ("vault.zip", zipped({"coffee.md": markdown.COFFEE, "origins.md": markdown.ORIGINS}), {"note": 4, "edge": 4}),
    "csv": ("notes.csv", "content,tags\nLikes tea,food\nHat einen Hund,\n", {"note": 2}),
    "json": ("memories.json", ["Likes tea", "Has a dog"], {"note": 2}),
    "text": ("memories.txt", lists.ANSWER, {"note": 5}),
}  # fmt: skip


@pytest.mark.parametrize("name", FILES)
def test_a_second_time_brings_nothing_new(name: str, bob: User, take_in: TakeIn) -> None:
    called, content, expected = FILES[name]
    data = as_bytes(content)

    first = take_in(bob, data, name=called)
    assert (first.state, first.error, counts(first, "wrong")) == ("done", "", {})
    assert (first.reader, counts(first)) == (name.split()[0], expected)
    before = exported(bob)
    again = take_in(bob, data, name=called)

    assert (again.state, counts(again)) == ("done", {})
    assert exported(bob) == before


def test_the_parts_of_an_export_bring_nothing_new_after_the_whole(bob: User, take_in: TakeIn) -> None:
    take_in(bob, zipped(claude.OLD), name="claude.zip")
    for name, files in claude.PARTS.items():
        if "metadata" not in name and "feedback" not in name:
            assert counts(take_in(bob, zipped(files), name=name)) == {}


def test_two_people_import_the_same_file_and_each_has_their_own(bob: User, take_in: TakeIn) -> None:
    other = make_user("carol")
    jobs: list[Any] = [take_in(user, zipped(claude.OLD), name="x.zip") for user in (bob, other)]

    assert counts(jobs[0]) == counts(jobs[1])
    for model in (Memory, MemoryFile, Message):
        rows = [set(model.objects.for_user(user).values_list("pk", flat=True)) for user in (bob, other)]
        assert rows[0]
        assert not rows[0] & rows[1]
    assert not MemoryEdge.objects.for_user(other).exists()


HERONS = [
    node("q", ROOT, "user", "Where do herons nest?"),
    node("old", "q", "assistant", "In caves."),
    node("new", "q", "assistant", "In trees."),
]
OF_CLAUDE = [
    {"uuid": "q", "sender": "human", "text": "Where do herons nest?", "parent_message_uuid": ""},
    {"uuid": "old", "sender": "assistant", "text": "In caves.", "parent_message_uuid": "q"},
    {"uuid": "new", "sender": "assistant", "text": "In trees.", "parent_message_uuid": "q"},
]
HISTORY: dict[str, Any] = {"messages": talk.MESSAGES, "currentId": "a1"}
ANEW: dict[str, tuple[object, object]] = {
    "open-webui": ([{"id": "chat-1", "chat": {"history": HISTORY}}], [talk.CHAT]),
    "chatgpt": ([chat("c", "", tree(*HERONS[:2]), "old")], [chat("c", "", tree(*HERONS), "new")]),
    "claude": (
        [{"uuid": "c", "chat_messages": OF_CLAUDE[:2]}],
        [{"uuid": "c", "chat_messages": OF_CLAUDE}],
    ),
}
"""Exports before and after an answer was made anew."""


@pytest.mark.parametrize("name", ANEW)
@pytest.mark.parametrize("went_on", [False, True])
def test_what_gave_way_between_two_exports_gives_way_here_unless_the_chat_went_on_here(
    bob: User, take_in: TakeIn, name: str, went_on: bool
) -> None:
    first, second = map(as_bytes, ANEW[name])
    assert take_in(bob, first, name="chats.json").reader == name
    question, old = Message.objects.for_user(bob).order_by("position")
    if went_on:
        Turn.objects.create(user=bob, conversation=old.conversation)
    tried = take_in(bob, second, name="chats.json", dry_run=True)
    job = take_in(bob, second, name="chats.json")

    assert (counts(job), counts(job, "skipped")) == (counts(tried), counts(tried, "skipped"))
    said = list(Message.objects.for_user(bob).values_list("text", flat=True))
    assert said[0] == question.text
    assert said[-1] in {"In trees.", "De nada."}
    assert (old.text in said) is went_on
    found = any(passages_saying(bob.pk, old.text, source=Source.CONVERSATION))
    assert found is went_on
    before = exported(bob)
    assert counts(take_in(bob, second, name="chats.json")) == {}
    assert exported(bob) == before


def dated(kind: str, talk: dict[str, Any], hour: int) -> dict[str, Any]:
    """The chat as it was exported after a last change at that hour, which made its last message."""

    def moment(hour: int) -> Any:
        at = datetime(2026, 5, 1, hour, tzinfo=UTC)
        return at.isoformat() if kind == "claude" else at.timestamp()

    talk = deepcopy(talk)
    if kind == "claude":
        said, key, names = talk["chat_messages"], "created_at", ("created_at", "updated_at")
    elif kind == "chatgpt":
        said = [each["message"] for each in talk["mapping"].values() if each.get("message")]
        key, names = "create_time", ("create_time", "update_time")
    else:
        said = list(talk["chat"]["history"]["messages"].values())
        key, names = "timestamp", ("created_at", "updated_at")
    for number, message in enumerate(said):
        message[key] = moment(number)
    said[-1][key] = moment(hour)
    return talk | dict(zip(names, (moment(0), moment(hour)), strict=True))


@pytest.mark.parametrize(
    ("name", "went_on"),
    [*((name, False) for name in ANEW), ("chatgpt", True), ("claude", True)],
)
def test_an_older_export_after_a_newer_one_brings_no_older_version_back(
    bob: User, take_in: TakeIn, name: str, went_on: bool
) -> None:
    talks: Any = ANEW[name]
    old, new = (
        [dated(name, each, hour) for each in some] for some, hour in zip(talks, (5, 9), strict=True)
    )
    assert take_in(bob, as_bytes(new), name="chats.json").reader == name
    if went_on:
        Turn.objects.create(user=bob, conversation=Message.objects.for_user(bob)[0].conversation)
    before = exported(bob)
    job = take_in(bob, as_bytes(old), name="chats.json")
    assert counts(job) == {}
    assert {each["reason"] for each in job.report["skipped"]} >= {OLDER}
    assert exported(bob) == before
