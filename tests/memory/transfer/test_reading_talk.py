"""Conversations of Open WebUI and of Claude Code, and Claude Code's memory."""

from datetime import UTC, datetime
from typing import Any

import pytest

from .reading import Found, Uploads, json_lines, zipped

AT = 1_756_000_000


def owui_message(
    key: str, parent: str | None, children: list[str], role: str, content: Any, at: int
) -> dict[str, Any]:
    return {
        "id": key,
        "parentId": parent,
        "childrenIds": children,
        "role": role,
        "content": content,
        "timestamp": AT + at,
        "models": ["x"],
    }


THOUGHT = '<details type="reasoning" done="true" duration="3">\n<summary>Thought</summary>\n> secret\n</details>\n'
MESSAGES = {
    "u1": owui_message("u1", None, ["a1", "a2"], "user", "¿Qué es un monad?", 0),
    "a1": owui_message("a1", "u1", [], "assistant", "Old answer", 1),
    "a2": owui_message("a2", "u1", ["u2"], "assistant", THOUGHT + "Un monoide.", 2),
    "u2": owui_message(
        "u2", "a2", ["a3"], "user", [{"type": "text", "text": "Gracias"}, {"type": "image_url"}], 3
    ),
    "a3": owui_message("a3", "u2", [], "assistant", "<think>hm</think>De nada.", 4),
}
CHAT = {
    "id": "chat-1", "user_id": "u", "title": "Monads", "created_at": AT, "updated_at": AT + 9, "share_id": None, "archived": False,
    "pinned": False, "meta": {"tags": ["math"]}, "folder_id": None, "current_message_id": "a3", "summary": None,
    "chat": {"id": "", "title": "Monads", "models": ["x"], "params": {}, "history": {"messages": MESSAGES, "currentId": "a3"}, "messages": [], "timestamp": AT * 1000},
}  # fmt: skip
OWUI_SAID = [
    [
        ("user", "¿Qué es un monad?"),
        ("assistant", "Un monoide."),
        ("user", "Gracias"),
        ("assistant", "De nada."),
    ]
]


@pytest.mark.parametrize("content", [[CHAT], {"chats": [CHAT]}, CHAT, [CHAT["chat"]]])
def test_chats_of_open_webui_follow_the_current_branch(upload: Uploads, content: object) -> None:
    found = Found(upload("chat-export-1756.json", content))

    assert found.reader.name == "open-webui"
    assert found.said == OWUI_SAID
    assert found.conversations[0].created_at == datetime.fromtimestamp(AT, UTC)
    assert found.conversations[0].title == "Monads"


def test_an_answer_of_open_webui_that_stands_in_its_output_alone_is_taken(upload: Uploads) -> None:
    output = [
        {"type": "reasoning", "content": [{"type": "output_text", "text": "hm"}]},
        {"type": "message", "content": [{"type": "output_text", "text": "Un monoide."}]},
        {"type": "function_call", "name": "f", "arguments": "{}"},
        None,
    ]
    answer = {**owui_message("a1", "u1", [], "assistant", "", 1), "output": output}
    messages = {"u1": owui_message("u1", None, ["a1"], "user", "Hola", 0), "a1": answer}
    history = {"messages": messages, "currentId": "a1"}
    found = Found(upload("chats.json", [{**CHAT, "chat": {"title": "Monads", "history": history}}]))

    assert found.said == [[("user", "Hola"), ("assistant", "Un monoide.")]]


def test_a_chat_of_open_webui_with_a_plain_list_is_read_in_its_order(upload: Uploads) -> None:
    plain = {
        "id": "c",
        "title": "t",
        "user_id": "u",
        "chat": {
            "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}]
        },
    }

    assert Found(upload("chats.json", [plain])).said == [[("user", "hi"), ("assistant", "yo")]]


def test_memories_of_open_webui_are_notes(upload: Uploads) -> None:
    rows = [
        {
            "id": "m1",
            "user_id": "u",
            "path": None,
            "content": "Vive en Lima",
            "created_at": AT,
            "updated_at": AT + 1,
        }
    ]
    found = Found(upload("memories.json", rows))

    assert found.reader.name == "open-webui"
    assert found.texts == ["Vive en Lima"]
    assert found.notes[0].created_at == datetime.fromtimestamp(AT, UTC)


def line(kind: str, key: str, parent: str | None, content: Any, **more: Any) -> dict[str, Any]:
    known = {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/w",
        "sessionId": "s-1",
        "version": "2.1.300",
    }
    said = {"message": {"role": kind, "content": content}} if kind in {"user", "assistant"} else {}
    return {**known, "type": kind, **said, "uuid": key, "timestamp": "2026-11-01T10:00:00.000Z", **more}


TRANSCRIPT = [
    {"type": "summary", "summary": "Fix the build", "leafUuid": "x"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
    line(
        "user",
        "0",
        None,
        "<command-name>/clear</command-name>\n<command-message>clear</command-message>",
    ),
    line(
        "user", "1", "0", "Warum bricht der Build ab?\n<system-reminder>Do not tell.</system-reminder>"
    ),
    line("assistant", "2", "1", [{"type": "thinking", "thinking": "hm"}]),
    line("assistant", "3", "2", [{"type": "text", "text": "Ich sehe nach."}]),
    line(
        "assistant",
        "4",
        "3",
        [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "make"}}],
    ),
    line(
        "user",
        "5",
        "4",
        [{"type": "tool_result", "tool_use_id": "t", "content": "error"}],
        toolUseResult={"stdout": "error"},
    ),
    line("assistant", "s1", None, [{"type": "text", "text": "sub-agent"}], isSidechain=True),
    line("assistant", "6a", "5", [{"type": "text", "text": "Rewound answer"}]),
    line("system", "6b", "5", None, subtype="informational"),
    line("assistant", "6", "6b", [{"type": "text", "text": "A header is missing."}]),
    line("user", "7", "6", "Caveat: meta", isMeta=True),
    line("user", "8", "7", [{"type": "text", "text": "[Request interrupted by user]"}]),
    line("user", "9", "8", [{"type": "text", "text": "Dann füge ihn hinzu."}, {"type": "image"}]),
]
CODE_SAID = [
    [
        ("user", "Warum bricht der Build ab?"),
        ("assistant", "Ich sehe nach."),
        ("assistant", "A header is missing."),
        ("user", "Dann füge ihn hinzu."),
    ]
]


def test_a_transcript_of_claude_code_keeps_what_was_typed_and_answered(upload: Uploads) -> None:
    found = Found(upload("0f.jsonl", json_lines(*TRANSCRIPT)))

    assert found.reader.name == "claude-code"
    assert found.said == CODE_SAID
    assert found.conversations[0].key == "s-1"
    assert found.conversations[0].title == "Fix the build"


def test_a_cut_last_line_of_a_transcript_is_named(upload: Uploads) -> None:
    found = Found(upload("0f.jsonl", json_lines(*TRANSCRIPT) + '\n{"type": "user", "mess'))

    assert found.said == CODE_SAID
    assert [each.partition(":")[0] for each in found.wrong] == ["0f.jsonl, line 16"]


FOLDER = {
    "memory/MEMORY.md": "# Memory\n\n- [Role](user_role.md) — data scientist\n- [Tests](feedback_testing.md)\n\n## Loose\n- The staging server is called pluto\n",
    "memory/user_role.md": "---\nname: user-role\ndescription: What the user does\ntype: user\nmodified: 2026-10-01T08:00:00.000Z\n---\n\nThe user is a data scientist. See [[feedback-testing]].\n",
    "memory/feedback_testing.md": "---\nname: feedback-testing\ndescription: Real databases in tests\nmetadata:\n  node_type: memory\n  type: feedback\n---\nKeine Mocks für die Datenbank.\n",
    "session.jsonl": json_lines(*TRANSCRIPT),
}  # fmt: skip


def test_the_memory_folder_of_claude_code_gives_its_topics_and_what_only_the_index_says(
    upload: Uploads,
) -> None:
    found = Found(upload("project.zip", zipped(FOLDER)))

    assert found.reader.name == "claude-code"
    assert found.texts == [
        "The staging server is called pluto",
        "feedback-testing: Real databases in tests\n\nKeine Mocks für die Datenbank.",
        "user-role: What the user does\n\nThe user is a data scientist. See [[feedback-testing]].",
    ]
    assert [note.kind for note in found.notes] == [None, "preference", "fact"]
    assert found.edges == [(found.texts[2], "related", found.texts[1])]
    assert found.said == CODE_SAID


def test_one_topic_file_is_known_by_its_front_matter(upload: Uploads) -> None:
    found = Found(upload("user_role.md", FOLDER["memory/user_role.md"]))

    assert found.reader.name == "claude-code"
    assert found.notes[0].updated_at == datetime(2026, 10, 1, 8, tzinfo=UTC)
