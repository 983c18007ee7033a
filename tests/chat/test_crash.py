"""A real server process dies at any point of a turn: nothing confirmed is lost, and the conversation goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.chat.server import Server
from tests.peers.anthropic_server import AnthropicServer, echo, reply, tool
from tests.waiting import eventually

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def prepared(peer: AnthropicServer, tmp_path_factory: pytest.TempPathFactory) -> Server:
    """A data directory with its tables and its user, to be copied."""
    return Server(tmp_path_factory.mktemp("prepared"), peer.url)


@pytest.fixture
def server(tmp_path: Path, peer: AnthropicServer, prepared: Server) -> Iterator[Server]:
    peer.script.clear()
    peer.fallback = echo
    server = prepared.copy(tmp_path / "data")
    try:
        yield server.start()
    finally:
        server.kill()


def until_text(stream: Iterator[dict[str, Any]], words: str) -> str:
    """Read a stream until its text so far ends in these words, in however many pieces. Gives the conversation."""
    text = ""
    for event in stream:
        if event["type"] == "text_delta":
            text += event["text"]
            if text.endswith(words):
                return str(event["conversation"])
    raise AssertionError(f"the stream ended with {text!r}")


def state(server: Server) -> str:
    return str(server.rows("select state from chat_turn order by id desc limit 1")[0][0])


def test_text_under_way_is_kept_and_the_turn_marked_interrupted(
    server: Server, peer: AnthropicServer
) -> None:
    held = reply("One two three four", hold_after=5)
    peer.add(held)
    with server.chat("Count") as stream:
        place = until_text(stream, "three ")
        eventually(lambda: "three" in str(server.rows("select payload from chat_turnevent")))
        server.kill()
    held.release.set()
    server.start()
    server.expire_leases()
    eventually(lambda: state(server) == "interrupted")
    rows = server.get(f"conversations/{place}/messages/")["results"]
    assert [(row["role"], row["text"]) for row in rows] == [
        ("user", "Count"),
        ("assistant", "One two three "),
    ]
    assert rows[0]["error"]["code"] == "interrupted"
    peer.add(reply("Five."))
    with server.chat("Go on", conversation=place) as stream:
        assert next(event for event in stream if event["type"] == "response")["text"] == "Five."
    sent = (
        peer.messages[-1]["messages"]
        if peer.messages[-1]["max_tokens"] > 100
        else peer.messages[-2]["messages"]
    )
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]


def test_a_confirmed_note_is_there_and_its_call_not_run_again(
    server: Server, peer: AnthropicServer
) -> None:
    held = reply("Saved.", hold_after=1)
    peer.add(reply(tool("memory_save", {"content": "Alice likes figs."})), held)
    with server.chat("I like figs") as stream:
        for event in stream:
            place = event["conversation"]
            if event["type"] == "tool_result":
                break
        server.kill()
    held.release.set()
    server.start()
    server.expire_leases()
    eventually(lambda: state(server) == "interrupted")
    assert [row["content"] for row in server.get("memories/")["results"]] == ["Alice likes figs."]
    assert server.rows("select count(*), max(state) from agent_toolcall") == [(1, "done")]
    rows = server.get(f"conversations/{place}/messages/")["results"]
    assert rows[1]["tool_calls"][0]["is_error"] is False


def test_a_confirmed_message_that_was_not_begun_is_answered_after_the_restart(
    server: Server, peer: AnthropicServer
) -> None:
    held = reply("One two", hold_after=3)
    peer.add(held)
    with server.chat("First") as stream:
        for event in stream:
            place = event["conversation"]
            if event["type"] == "text_delta":
                break
        with server.chat("Second", conversation=place) as second:
            assert next(iter(second))["type"] == "turn_queued"
            server.kill()
    held.release.set()
    peer.fallback = lambda request: reply("After the restart.")
    server.start()
    server.expire_leases()
    eventually(lambda: state(server) == "done")
    texts = [row["text"] for row in server.get(f"conversations/{place}/messages/")["results"]]
    assert texts[0] == "First"
    assert texts[-2:] == ["Second", "After the restart."]


def test_a_waiting_turn_is_resumed_by_another_process_after_a_kill(
    server: Server, peer: AnthropicServer
) -> None:
    peer.add(reply(tool("ask_user", {"question": "Which?"})), reply("The red one."))
    with server.chat("Choose") as stream:
        end = list(stream)[-1]
    server.kill()
    server.start()
    server.expire_leases()
    with server.http as client:
        path = f"/api/v1/conversations/{end['conversation']}/answer/"
        answered = client.post(path, json={"text": "red"}).json()
    assert (answered.get("state"), answered.get("text")) == ("done", "The red one."), answered


def test_a_server_that_is_stopped_in_order_leaves_its_turn_interrupted_at_once(
    server: Server, peer: AnthropicServer
) -> None:
    held = reply("One two three", hold_after=4)
    peer.add(held)
    with server.chat("Count") as stream:
        until_text(stream, "two ")
        server.stop()
    held.release.set()
    assert state(server) == "interrupted"
    assert server.rows("select text from chat_message order by position") == [("Count",), ("One two ",)]
    assert server.rows("select runner from chat_conversation") == [("",)]


def test_killed_at_many_points_everything_confirmed_is_there(
    server: Server, peer: AnthropicServer
) -> None:
    """Five conversations, each killed after another number of events; what a client has seen must be in the rows."""
    for steps in (1, 2, 4, 6, 9):
        peer.script.clear()
        note = f"Fact number {steps}."
        peer.add(
            reply("Well, ", tool("memory_save", {"content": note})), reply("a b c d e f g", delay=0.02)
        )
        seen: list[dict[str, Any]] = []
        with server.chat(f"Message {steps}") as stream:
            for event in stream:
                seen.append(event)
                if len(seen) == steps:
                    break
            server.kill()
        server.start()
        server.expire_leases()
        eventually(lambda: state(server) not in {"queued", "running"})
        place = seen[0]["conversation"]
        rows = server.get(f"conversations/{place}/messages/")["results"]
        assert rows[0]["text"] == f"Message {steps}"
        if any(event["type"] == "tool_result" for event in seen):
            assert note in [row["content"] for row in server.get("memories/")["results"]]
        if any(event["type"] == "response" for event in seen):
            assert rows[-1]["text"] == "a b c d e f g"
        open_calls = server.rows("select count(*) from agent_toolcall where state != 'done'")
        assert open_calls == [(0,)]


def test_two_web_processes_share_a_conversation(server: Server, peer: AnthropicServer) -> None:
    """The second process shows what runs in the first, stops it, and answers what it asked."""
    held = reply("One two three", hold_after=4)
    peer.add(held)
    with server.chat("Count") as stream:
        place = until_text(stream, "two ")
        server.start()
        with server.http as client:
            stopping = client.post(f"/api/v1/conversations/{place}/stop/").json()
            assert stopping["stopping"] == 1
        assert [event["type"] for event in stream][-1] == "turn_stopped"
    held.release.set()
    assert state(server) == "stopped"
