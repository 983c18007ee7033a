"""ChatGPT's export, old and new."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from apps.core.errors import InvalidInput

from .chatgpt_sample import ROOT, TALK, T, chat, node, tree
from .reading import Found, Uploads, zipped

SAID = [
    ("user", "我下周去大阪 🎌"),
    ("assistant", "大阪很好！ See Osaka"),
    ("user", "Et ce temple ?"),
    ("user", "and the food?"),
    ("assistant", "C'est Shitennō-ji."),
]


def small(key: str, text: str, **more: object) -> dict[str, Any]:
    return chat(key, text, tree(node(f"{key}-u", ROOT, "user", text)), f"{key}-u", **more)


def test_it_follows_the_branch_that_was_shown_and_leaves_out_what_nobody_said(upload: Uploads) -> None:
    found = Found(
        upload(
            "chatgpt.zip", zipped({"conversations.json": [TALK], "chat.html": "<html>", "user.json": {}})
        )
    )

    assert found.reader.name == "chatgpt"
    assert found.said == [SAID]
    [conversation] = found.conversations
    assert conversation.key == "693dfd6c-7d34-8321-8f28-3a1a4a5b6c7d"
    assert conversation.title == "旅行计划"
    assert conversation.created_at == datetime.fromtimestamp(T, UTC)
    assert conversation.messages[0].key == "u1"
    assert conversation.place == "conversations.json, entry 1"


def test_what_its_tool_bio_saved_becomes_a_note(upload: Uploads) -> None:
    found = Found(upload("conversations.json", [TALK]))

    assert found.texts == ["User travels to Osaka next week."]
    assert found.notes[0].created_at == datetime.fromtimestamp(T, UTC)


def test_shards_are_read_in_order_and_a_conversation_in_two_of_them_once(upload: Uploads) -> None:
    files = {
        "conversations-001.json": [small("c3", "three"), small("c1", "one")],
        "conversations-000.json": [small("c1", "one"), small("c2", "two")],
        "export_manifest.json": {"version": 1},
        "shared_conversations.json": [{"id": "x", "conversation_id": "c1", "title": "one"}],
        "message_feedback.json": [],
        "user_settings.json": {},
    }
    found = Found(
        upload(
            "export.zip", zipped({f"OpenAI-export/{name}": content for name, content in files.items()})
        )
    )

    assert [each.key for each in found.conversations] == ["c1", "c2", "c3"]
    assert len(found.skipped) == 1
    assert "more than once" in found.skipped[0]


def test_what_it_was_asked_not_to_remember_is_left_out_with_the_reason(upload: Uploads) -> None:
    found = Found(upload("conversations.json", [small("c1", "secret", is_do_not_remember=True)]))

    assert not found.conversations
    assert found.skipped == [
        "conversations.json, entry 1: ChatGPT was asked not to remember this conversation."
    ]


def test_times_may_be_missing_everywhere(upload: Uploads) -> None:
    entry = small("c1", "hello", create_time=None, update_time=None)
    del entry["create_time"]
    entry["mapping"]["c1-u"]["message"]["create_time"] = T + 5
    [conversation] = Found(upload("conversations.json", [entry])).conversations
    assert conversation.created_at == datetime.fromtimestamp(T + 5, UTC)

    entry["mapping"]["c1-u"]["message"]["create_time"] = None
    [conversation] = Found(upload("conversations.json", [entry])).conversations
    assert conversation.created_at is None


def test_without_a_current_node_the_youngest_leaf_counts(upload: Uploads) -> None:
    mapping = tree(
        node("u", ROOT, "user", "question"),
        node("b", "u", "assistant", "second answer", at=T + 9),
        node("a", "u", "assistant", "first answer", at=T + 1),
    )
    for current in (None, "gone"):
        assert Found(upload("conversations.json", [chat("c", "t", mapping, current)])).said == [
            [("user", "question"), ("assistant", "second answer")]
        ]


def test_nodes_that_name_each_other_as_parents_end_the_walk(upload: Uploads) -> None:
    mapping = tree(node("a", "b", "user", "one"), node("b", "a", "assistant", "two"))

    assert sorted(Found(upload("c.json", [chat("c", "t", mapping, "a")])).said[0]) == [
        ("assistant", "two"),
        ("user", "one"),
    ]


def test_broken_entries_are_named_and_the_rest_is_taken(upload: Uploads) -> None:
    entries = [
        small("c1", "one"),
        None,
        {"title": "no mapping"},
        {"id": "x", "mapping": None},
        small("c2", "two"),
    ]
    found = Found(upload("conversations.json", entries))

    assert [each.key for each in found.conversations] == ["c1", "c2"]
    assert [each.partition(":")[0] for each in found.wrong] == [
        f"conversations.json, entry {n}" for n in (2, 3, 4)
    ]


def test_a_conversation_without_words_is_skipped(upload: Uploads) -> None:
    entry = chat(
        "c", "empty", tree(node("u", ROOT, "user", [{"content_type": "image_asset_pointer"}])), "u"
    )
    found = Found(upload("conversations.json", [entry, small("c2", "hi")]))

    assert found.skipped == ["conversations.json, entry 1: Nothing was said in it."]


def test_saved_memories_are_taken_where_the_export_has_them(upload: Uploads) -> None:
    memories = [
        {
            "id": "m1",
            "content": "Likes Darjeeling",
            "enabled": True,
            "created_at": "2025-01-02T03:04:05Z",
        },
        {"content": "Switched off", "enabled": False},
        "Plays the cello",
        {"memory": "Lives in Köln", "timestamps": {"created": 1_700_000_000_000}},
        {"content": None},
    ]
    found = Found(
        upload("x.zip", zipped({"conversations.json": [small("c", "hi")], "memory.json": memories}))
    )

    assert found.texts == ["Likes Darjeeling", "Plays the cello", "Lives in Köln"]
    assert [note.created_at and note.created_at.year for note in found.notes] == [2025, None, 2023]
    assert len(found.skipped) == 2


def test_the_newest_list_of_memories_beside_a_chat_is_taken_once(upload: Uploads) -> None:
    def with_list(key: str, text: str, at: float) -> dict[str, Any]:
        content = {"content_type": "model_editable_context", "model_set_context": text}
        nodes = (
            node(f"{key}c", ROOT, "assistant", content=content, at=at),
            node(f"{key}u", f"{key}c", "user", "hi"),
        )
        return chat(key, "t", tree(*nodes), f"{key}u")

    newer = with_list("new", "1. [2025-05-02]. Likes ice cream.\n2. [2025-06-01]. Has a cat.", T + 9)
    found = Found(
        upload("conversations.json", [newer, with_list("old", "1. [2024-01-01]. Likes snow.", T)])
    )

    assert found.texts == ["Likes ice cream.", "Has a cat."]
    assert str(found.notes[0].created_at)[:10] == "2025-05-02"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_one_conversation_by_itself_is_understood(upload: Uploads, encoding: str) -> None:
    packed = json.dumps(small("c1", "alone")).encode(encoding)
    assert Found(upload("chat.json", packed)).said == [[("user", "alone")]]


@pytest.mark.parametrize("part", [0.3, 0.6, 0.99])
def test_half_a_file_is_refused_with_a_sentence(upload: Uploads, part: float) -> None:
    text = json.dumps([TALK, small("c2", "x" * 500)])
    with pytest.raises(InvalidInput, match="broken or cut off"):
        Found(upload("conversations.json", text[: int(len(text) * part)]))


def test_an_empty_export_gives_nothing(upload: Uploads) -> None:
    assert Found(upload("x.zip", zipped({"conversations.json": [], "chat.html": ""}))).all == []


@pytest.mark.parametrize(
    "time", [T * 1000, T * 1e6, str(T), "2025-12-14T00:19:33Z", "14.12.2025 00:19:33"]
)
def test_a_time_may_count_in_other_units(upload: Uploads, time: object) -> None:
    [conversation] = Found(upload("c.json", [small("c", "hi", create_time=time)])).conversations
    assert conversation.created_at
    assert str(conversation.created_at)[:16] == "2025-12-14 00:19"


@pytest.mark.parametrize("time", [-1e25, 1e30, "soon", True, [], {}, 0, "99999-01-01", 10**400])
def test_a_time_that_cannot_be_is_left_out(upload: Uploads, time: object) -> None:
    entry = small("c", "hi", create_time=time, update_time=time)
    entry["mapping"]["c-u"]["message"]["create_time"] = time
    assert Found(upload("c.json", [entry])).conversations[0].created_at is None
