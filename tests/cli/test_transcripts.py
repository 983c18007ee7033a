"""Conversations in files are read, format by format."""

import json
from typing import Any

import pytest

from izzy_cli.errors import Problem
from izzy_cli.transcripts import BATCH_MESSAGES, Format, Message, batches, messages_of


def read(text: str, kind: Format = "auto") -> list[Message]:
    return messages_of(text, "talk.txt", "talk", kind)


def bodies(text: str, kind: Format = "auto") -> list[dict[str, Any]]:
    """The messages without the ids that were made for them."""
    return [
        {name: value for name, value in message.body.items() if name != "external_id"}
        for message in read(text, kind)
    ]


HELLO = {"role": "user", "content": "Hello"}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(HELLO),
        json.dumps(HELLO) + "\n\n",
        json.dumps([HELLO]),
        json.dumps([HELLO], indent=1),
        json.dumps({"messages": [HELLO]}),
        json.dumps({"messages": [HELLO]}, indent=2),
        json.dumps({"role": "human", "text": "Hello"}),
        json.dumps({"role": "user", "content": [{"type": "text", "text": "Hello"}]}),
        "user: Hello",
        "Human: Hello\n",
        "**You:** Hello",
        "You said:\nHello",
    ],
)
def test_a_message_is_read_whatever_it_is_written_in(text: str) -> None:
    assert bodies(text) == [HELLO]


@pytest.mark.parametrize("kind", ["auto", "jsonl"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_line_of_json_ends_with_a_line_feed_alone(kind: Format, ending: str) -> None:
    said = [{"role": "user", "content": "one\u2028two\u2029three\x85four"}, HELLO]
    lines = [json.dumps(each, ensure_ascii=False) for each in said]
    assert bodies(ending.join(lines) + ending, kind) == said


def test_a_line_without_a_name_goes_on_with_the_message_before() -> None:
    text = "user: The list:\n- eggs\n\nNote: two\nassistant: Fine\nhttps://example.org\n"
    assert bodies(text) == [
        {"role": "user", "content": "The list:\n- eggs\n\nNote: two"},
        {"role": "assistant", "content": "Fine\nhttps://example.org"},
    ]


def test_where_no_role_occurs_any_name_is_a_speaker() -> None:
    assert bodies("Ann: Hi\nBob Miller: Hello Ann\n") == [
        {"speaker": "Ann", "content": "Hi"},
        {"speaker": "Bob Miller", "content": "Hello Ann"},
    ]


def test_what_nobody_said_is_sent_without_its_words() -> None:
    answered = {"role": "user", "content": [{"type": "tool_result", "content": "secret page"}]}
    assert bodies(json.dumps([{"role": "system", "content": "Be brief"}, answered])) == [
        {"role": "system"},
        {"role": "tool"},
    ]


@pytest.mark.parametrize("moment", [1_700_000_000, 1_700_000_000_000, 1_700_000_000.0])
def test_a_time_in_seconds_or_milliseconds_is_a_time(moment: float) -> None:
    assert bodies(json.dumps({**HELLO, "created_at": moment}))[0]["created_at"].startswith(
        "2023-11-14T22:13:20"
    )


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"role": "user", "content": "a"}\n{broken', "talk.txt:2 is not valid JSON"),
        ('{"role": "user", "content": "a"}\n[1]', "talk.txt:2 is no message"),
        ('{"content": "a"}', "talk.txt:1: a message needs a role"),
        ('[{"role": "user"}]', "talk.txt, message 1: the message has no content"),
        ('[{"role": "user", "content": "a"},', "is not valid JSON"),
        ("hello", "talk.txt:1: a message begins with a name"),
        ("", "no messages in talk.txt"),
        ('{"role": "user", "content": "a", "created_at": 1e30}', "created_at is no time"),
    ],
)
def test_what_is_no_message_is_named_by_its_place(text: str, problem: str) -> None:
    with pytest.raises(Problem) as raised:
        read(text)
    assert problem in raised.value.message


def test_a_file_that_has_grown_keeps_the_ids_of_what_was_there() -> None:
    before = [message.body["external_id"] for message in read("user: hi\nassistant: hi\nuser: hi\n")]
    after = [
        message.body["external_id"] for message in read("user: hi\nassistant: hi\nuser: hi\nuser: bye\n")
    ]
    assert len(set(after)) == 4
    assert after[:3] == before


def test_ids_of_their_own_are_kept() -> None:
    assert read(json.dumps({**HELLO, "external_id": 7}))[0].body["external_id"] == "7"


def test_batches_keep_sessions_apart_and_say_that_a_tool_spoke_before() -> None:
    lines = [
        {"role": "tool", "session": "a"},
        *({"role": "user", "content": f"{n}", "session": "a"} for n in range(BATCH_MESSAGES)),
    ]
    lines.append({"role": "user", "content": "b", "session": "b"})
    found = list(batches(read("\n".join(map(json.dumps, lines)))))
    assert [(batch.session, len(batch.messages)) for batch in found] == [
        ("a", BATCH_MESSAGES),
        ("a", 1),
        ("b", 1),
    ]
    assert [batch.body()[0] == {"role": "tool"} for batch in found] == [True, True, False]
