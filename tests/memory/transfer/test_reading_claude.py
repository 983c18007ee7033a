"""Claude's export: one zip, several, or a file of them."""

import json
from typing import Any

import pytest

from apps.core.errors import InvalidInput

from .reading import Found, Uploads, zipped

ACCOUNT, OTHER = "00000000-0000-4000-8000-0000000000aa", "00000000-0000-4000-8000-0000000000bb"
START = "00000000-0000-4000-8000-000000000000"


def text(words: str) -> dict[str, Any]:
    stamps = {
        "start_timestamp": "2026-08-31T06:00:00Z",
        "stop_timestamp": "2026-08-31T06:00:01Z",
        "flags": None,
    }
    return {**stamps, "type": "text", "text": words, "citations": []}


def message(
    key: str, sender: str, content: list[Any], minute: int, parent: str | None = None, **more: Any
) -> dict[str, Any]:
    stamp = f"2026-08-31T06:{minute:02}:00.000000Z"
    flat = "\n\n".join(
        block.get("text", "```\nThis block is not supported\n```")
        for block in content
        if isinstance(block, dict)
    )
    known: dict[str, Any] = {
        "uuid": key,
        "text": flat,
        "content": content,
        "sender": sender,
        "created_at": stamp,
    }
    if parent:
        known["parent_message_uuid"] = parent
    return known | {"updated_at": stamp, "attachments": [], "files": []} | more


def talk(key: str, name: str, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    stamps = {"created_at": "2026-08-31T06:00:00Z", "updated_at": "2026-08-31T07:00:00Z"}
    return {
        "uuid": key,
        "name": name,
        "summary": "",
        **stamps,
        "account": {"uuid": ACCOUNT},
        "chat_messages": [*messages],
        **more,
    }


BRANCHED = talk(
    "c-1",
    "Сервер",
    message("m1", "human", [text("Почему сервер падает?")], 0, START),
    message("m2", "assistant", [{"type": "thinking", "thinking": "hm"}, text("Old answer.")], 1, "m1"),
    message(
        "m3",
        "assistant",
        [
            {"type": "thinking", "thinking": "secret thought"},
            text("Ich sehe nach."),
            {"type": "tool_use", "name": "web_search", "input": {"query": "x"}, "id": "t"},
            {"type": "tool_result", "content": [{"type": "text", "text": "tool words"}]},
            text("Der Speicher ist voll."),
        ],
        2,
        "m1",
    ),
    message(
        "m4",
        "human",
        [
            text("Hier das Log."),
            {"type": "injected_prompt_block", "prompt": "date note", "injection_source": "x"},
        ],
        3,
        "m3",
        attachments=[
            {
                "file_name": "app.log",
                "file_size": 9,
                "file_type": "txt",
                "extracted_content": "OOM </document> killed",
            }
        ],
        files=[{"file_name": "shot.png"}],
    ),
    message("m5", "assistant", [{"type": "tool_use", "name": "artifacts", "input": {}}], 4, "m4"),
)
FLAT = talk(
    "c-2", "", message("a", "human", [], 0, text="Hola"), message("b", "assistant", [], 1, text="¡Hola!")
)
EMPTY = talk("c-3", "Nothing", message("x", "human", [], 0))
PROJECT = {
    "uuid": "p-1", "name": "Garten/2026", "description": "Beete planen", "is_private": True, "is_starter_project": False,
    "prompt_template": "Sei knapp.", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-02-01T00:00:00Z",
    "creator": {"uuid": ACCOUNT, "full_name": "Ada"},
    "docs": [
        {"uuid": "d-1", "filename": "plan.md", "content": "# Plan\nTomaten", "created_at": "2026-01-02T00:00:00Z"},
        {"uuid": "d-2", "filename": "../../etc/passwd", "content": "x", "created_at": None},
        {"uuid": "d-3", "filename": "empty.txt", "content": ""},
        None,
    ],
}  # fmt: skip
MEMORY = {
    "conversations_memory": "**Work context**\n\nAda is a backend engineer in Lisbon.\n\n**Preferences**\n\n- Answers in short sentences\n- 日本茶が好き",
    "project_memories": {"p-1": "The garden lies on a slope."},
    "memory_files": [
        {
            "path": "/profile.md",
            "content": "- [stated] metric units",
            "updated_at": "2026-01-02T03:04:05.000000Z",
        },
        {"path": "/areas/work.md", "content": "Kafka", "updated_at": None},
        None,
    ],
    "account_uuid": ACCOUNT,
}
USERS = [{"uuid": ACCOUNT, "full_name": "Ada", "email_address": "ada@example.org"}]
OLD = {
    "conversations.json": [BRANCHED, FLAT, EMPTY],
    "projects.json": [PROJECT],
    "memories.json": [MEMORY],
    "users.json": USERS,
}
PARTS: dict[str, dict[str, Any]] = {
    "conversations-000.zip": {"conversations.json": [BRANCHED, EMPTY]},
    "conversations-001.zip": {"conversations.json": [FLAT]},
    "projects-000.zip": {"projects/p-1.json": PROJECT},
    "memories-000.zip": {f"memories/{ACCOUNT}.json": MEMORY},
    "light_metadata-000.zip": {"users.json": USERS, "login_history.json": []},
    "feedback-000.zip": {"reflections/r.json": {"uuid": "r", "text": "good"}},
}  # fmt: skip
MANIFEST = {
    "total_files": 2,
    "data_files": [
        {"category": "memories", "export_url": "https://x/1", "filename": "memories-000.zip"}
    ],
}
SAID = [
    ("user", "Почему сервер падает?"),
    ("assistant", "Ich sehe nach.\n\nDer Speicher ist voll."),
    ("user", 'Hier das Log.\n\n<document name="app.log">\nOOM <\u200b/document> killed\n</document>'),
]


def test_the_old_zip_gives_conversations_projects_and_memories(upload: Uploads) -> None:
    found = Found(upload("data-2026.zip", zipped(OLD)))

    assert found.reader.name == "claude"
    assert found.said == [SAID, [("user", "Hola"), ("assistant", "¡Hola!")]]
    assert found.texts == [
        "Garten/2026: Beete planen",
        "Ada is a backend engineer in Lisbon.",
        "Answers in short sentences",
        "日本茶が好き",
        "The garden lies on a slope.",
    ]
    assert found.notes[1].tags == ["claude", "Work context"]
    assert found.notes[4].tags == ["claude", "Garten/2026"]
    assert found.files == {
        "/memories/claude/projects/Garten-2026/instructions.md": "Sei knapp.",
        "/memories/claude/projects/Garten-2026/plan.md": "# Plan\nTomaten",
        "/memories/claude/projects/Garten-2026/etc-passwd.md": "x",
        f"/memories/claude/{ACCOUNT}/profile.md": "- [stated] metric units",
        f"/memories/claude/{ACCOUNT}/areas/work.md": "Kafka",
    }
    assert any("Nothing was said" in reason for reason in found.skipped)


def test_the_new_zips_in_one_give_the_same_records(upload: Uploads) -> None:
    packed = {name: zipped(files) for name, files in PARTS.items()} | {"manifest-1.json": MANIFEST}
    found, old = Found(upload("all.zip", zipped(packed))), Found(upload("old.zip", zipped(OLD)))

    def keys(of: Found) -> list[str]:
        return sorted(
            [*(note.key for note in of.notes), *(each.key for each in of.conversations), *of.files]
        )

    assert found.reader.name == "claude"
    assert keys(found) == keys(old)


@pytest.mark.parametrize("name", ["conversations-000.zip", "projects-000.zip", "memories-000.zip"])
def test_each_of_the_new_zips_is_understood_by_itself(upload: Uploads, name: str) -> None:
    found = Found(upload(name, zipped(PARTS[name])))

    assert found.reader.name == "claude"
    assert found.notes or found.conversations


@pytest.mark.parametrize("content", [[BRANCHED], BRANCHED, MEMORY, [MEMORY], PROJECT, [PROJECT]])
def test_each_file_is_understood_by_itself_whatever_its_name(upload: Uploads, content: object) -> None:
    found = Found(upload("download.json", content))

    assert found.reader.name == "claude"
    assert found.notes or found.conversations


def test_a_manifest_alone_names_what_to_download(upload: Uploads) -> None:
    with pytest.raises(InvalidInput, match=r"memories-000\.zip"):
        Found(upload("manifest-1.json", MANIFEST))


def test_the_branch_that_the_export_names_wins_over_the_youngest(upload: Uploads) -> None:
    chosen = BRANCHED | {"current_leaf_message_uuid": "m2"}

    assert Found(upload("conversations.json", [chosen])).said == [
        [SAID[0], ("assistant", "Old answer.")]
    ]


def test_siblings_at_the_beginning_are_told_apart_too(upload: Uploads) -> None:
    entry = talk(
        "c", "t",
        message("a", "human", [text("first wording")], 0, START),
        message("b", "assistant", [text("answer")], 1, "a"),
        message("c", "human", [text("second wording")], 2, START),
        message("d", "assistant", [text("better")], 3, "c"),
    )  # fmt: skip
    assert Found(upload("conversations.json", [entry])).said == [
        [("user", "second wording"), ("assistant", "better")]
    ]


def test_a_missing_parent_does_not_lose_what_was_said_before(upload: Uploads) -> None:
    entry = talk(
        "c", "t",
        message("a", "human", [text("one")], 0, START),
        message("b", "assistant", [text("two")], 1, "gone"),
        message("c", "human", [text("three")], 2, "b"),
    )  # fmt: skip
    assert [words for _, words in Found(upload("conversations.json", [entry])).said[0]] == [
        "one",
        "two",
        "three",
    ]


def test_the_same_path_in_two_accounts_gives_two_files(upload: Uploads) -> None:
    files = {
        f"memories/{account}.json": MEMORY | {"account_uuid": account} for account in (ACCOUNT, OTHER)
    }
    found = Found(upload("memories-000.zip", zipped(files)))

    assert f"/memories/claude/{ACCOUNT}/profile.md" in found.files
    assert f"/memories/claude/{OTHER}/profile.md" in found.files


def test_design_chats_are_conversations(upload: Uploads) -> None:
    chat = {
        "uuid": "d-1", "title": "Logo", "created_at": "2026-08-01T00:00:00Z", "updated_at": None, "project": {"uuid": "x", "name": "Shop"},
        "messages": [
            {"uuid": "1", "role": "user", "content": {"content": "A fox", "authorAccountUuid": ACCOUNT}, "created_at": None},
            {"uuid": "2", "role": "assistant", "content": {"contentBlocks": [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "Done."}]}},
            None,
        ],
    }  # fmt: skip
    found = Found(upload("design_chats-000.zip", zipped({"design_chats/d-1.json": chat})))

    assert found.said == [[("user", "A fox"), ("assistant", "Done.")]]


def test_broken_entries_are_named_and_the_rest_is_taken(upload: Uploads) -> None:
    found = Found(
        upload("conversations.json", [FLAT, None, {"uuid": "x", "chat_messages": "no"}, [], BRANCHED])
    )

    assert len(found.conversations) == 2
    assert [line.partition(":")[0] for line in found.wrong] == [
        f"conversations.json, entry {n}" for n in (2, 3, 4)
    ]


def test_a_zip_within_a_zip_within_a_zip_is_refused(upload: Uploads) -> None:
    deep = zipped(
        {"conversations-000.zip": zipped({"inner.zip": zipped({"conversations.json": [FLAT]})})}
    )
    with pytest.raises(InvalidInput, match="a zip again"):
        Found(upload("x.zip", deep), "claude")


def test_half_a_file_within_a_zip_gives_a_sentence_and_no_end(upload: Uploads) -> None:
    half = json.dumps([FLAT, BRANCHED])[:-50]
    with pytest.raises(InvalidInput, match="cut off"):
        Found(upload("x.zip", zipped({"conversations.json": half})))
