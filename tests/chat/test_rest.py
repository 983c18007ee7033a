"""Talking with Izzy over REST, as one JSON answer and as server-sent events."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

import pytest
from django.db.models import Sum
from django.test import Client
from pytest_django import Settings

from apps.accounts import credentials
from apps.accounts.models import User
from apps.accounts.services import tokens_revoke
from apps.agent.model.client import Usage
from apps.agent.models import ModelCall
from apps.builder.builds.messages import message_add
from apps.builder.models import Build, MessageType
from apps.capabilities.catalog.versions import capability_begin
from apps.chat.models import Conversation, Message, Turn
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from tests.chat.client import Program, program_of
from tests.chat.rows import conversation, messages, turn
from tests.peers.anthropic_server import AnthropicServer, failure, reply, tool
from tests.waiting import PATIENCE


@pytest.fixture
async def program(alice: User, model: AnthropicServer) -> Program:
    return await program_of(alice)


async def streamed(response: Any) -> AsyncIterator[dict[str, Any]]:
    assert response.status_code == 200
    assert response["content-type"] == "text/event-stream"
    async for chunk in response.streaming_content:
        if chunk.startswith(b":"):
            continue
        lines = dict(line.split(": ", 1) for line in chunk.decode().strip().split("\n"))
        frame = json.loads(lines["data"])
        assert (lines["event"], int(lines["id"])) == (frame["type"], frame["seq"])
        yield frame


async def test_a_message_is_answered_with_one_json_object(
    alice: User, program: Program, model: AnthropicServer
) -> None:
    model.add(reply(tool("think", {"thought": "hm"})), reply("Hello."))
    place = await conversation(alice)
    answer = (await program.post("chat/", {"message": "Hi", "conversation": place})).json()
    await scheduler().idle()
    assert (answer["conversation"], answer["state"], answer["text"]) == (place, "done", "Hello.")
    assert [call["name"] for call in answer["tool_calls"]] == ["think"]
    assert answer["usage"]["calls"] == 2
    assert str((await turn(answer["turn"])).conversation_id) == place
    again = (await program.post("chat/", {"message": "And now?", "conversation": place})).json()
    await scheduler().idle()
    assert again["text"].endswith("And now?")
    assert len(await messages(place)) == 6


async def test_what_the_offline_responder_answers_is_no_usage_and_names_no_model(
    alice: User, program: Program, model: AnthropicServer, settings: Settings
) -> None:
    settings.ANTHROPIC_API_KEY = settings.ANTHROPIC_BASE_URL = ""
    answer = (await program.post("chat/", {"message": "Remember that I drink my tea black"})).json()
    await scheduler().idle()
    nothing = asdict(Usage())
    assert (answer["state"], answer["usage"]) == ("done", nothing)
    rows = await in_db(lambda: list(ModelCall.objects.for_user(alice).values_list("model", "endpoint")))
    assert set(rows) == {("offline", "offline")}
    assert await in_db(lambda: ModelCall.objects.for_user(alice).aggregate(Sum("input_tokens"))) == {
        "input_tokens__sum": 0
    }
    usage = (await program.get("usage/")).json()
    assert (usage["total"]["calls"], usage["by_day"], usage["by_model"]) == (0, [], [])
    log = (await program.get(f"conversations/{answer['conversation']}/log/")).json()
    assert (log["turns"][0]["model"], log["turns"][0]["usage"]) == ("offline", nothing)

    settings.ANTHROPIC_BASE_URL = model.url
    again = await program.post("chat/", {"message": "Hi", "conversation": answer["conversation"]})
    await scheduler().idle()
    assert again.json()["usage"]["calls"] == 1
    log = (await program.get(f"conversations/{answer['conversation']}/log/")).json()
    assert log["turns"][1]["model"] == settings.IZZY_CHAT_MODEL
    assert log["totals"]["usage"]["calls"] == 1


async def test_a_message_is_answered_with_events(
    alice: User, program: Program, model: AnthropicServer
) -> None:
    model.add(reply("Hello there."))
    response = await program.post("chat/", {"message": "Hi", "stream": True})
    frames = [frame async for frame in streamed(response)]
    await scheduler().idle()
    types = [frame["type"] for frame in frames]
    assert [kind for kind in types if kind != "text_delta"] == [
        "turn_queued",
        "turn_started",
        "response",
    ]
    assert "".join(frame["text"] for frame in frames if frame["type"] == "text_delta") == "Hello there."
    assert len({(frame["conversation"], frame["turn"]) for frame in frames}) == 1


async def test_a_client_that_leaves_does_not_end_the_turn(
    program: Program, model: AnthropicServer
) -> None:
    held = reply("One two three", hold_after=4)
    model.add(held)
    response = await program.post("chat/", {"message": "Count", "stream": True})
    seen: list[dict[str, Any]] = []
    writing = asyncio.Event()

    async def read() -> None:
        async for frame in streamed(response):
            seen.append(frame)
            if frame["type"] == "text_delta":
                writing.set()

    reader = asyncio.ensure_future(read())
    await asyncio.wait_for(writing.wait(), PATIENCE)
    reader.cancel()
    await asyncio.wait([reader], timeout=PATIENCE)
    assert reader.done()
    assert not scheduler().hub.feeds
    held.release.set()
    await scheduler().idle()
    assert (await turn(seen[0]["turn"])).state == "done"


@pytest.mark.parametrize("stream", [False, True])
async def test_a_question_is_answered_over_rest(
    alice: User, program: Program, model: AnthropicServer, stream: bool
) -> None:
    model.add(reply(tool("ask_user", {"question": "Which?"})), reply("Red it is."))
    place = await conversation(alice)
    asked = (await program.post("chat/", {"message": "Choose", "conversation": place})).json()
    assert (asked["state"], asked["pending_question"]["text"]) == ("waiting", "Which?")
    response = await program.post(f"conversations/{place}/answer/", {"text": "red", "stream": stream})
    if stream:
        frames = [frame async for frame in streamed(response)]
        assert frames[0]["type"] == "turn_resumed"
        assert frames[-1]["text"].endswith("Red it is.")
    else:
        assert (response.json()["state"], response.json()["text"]) == ("done", "Red it is.")
    await scheduler().idle()
    late = await program.post(f"conversations/{place}/answer/", {"text": "blue"})
    assert (late.status_code, late.json()["code"]) == (409, "not_waiting")


@pytest.mark.parametrize("stream", [False, True])
async def test_of_several_questions_the_next_is_told_when_one_is_answered(
    alice: User, program: Program, model: AnthropicServer, stream: bool
) -> None:
    model.add(
        reply(tool("ask_user", {"question": "Which?"}), tool("ask_user", {"question": "How many?"})),
        reply("Two red ones."),
    )
    place = await conversation(alice)
    asked = (await program.post("chat/", {"message": "Choose", "conversation": place})).json()
    assert asked["pending_question"]["text"] == "Which?"
    unclear = await program.post(f"conversations/{place}/answer/", {"text": "red"})
    assert (unclear.status_code, unclear.json()["code"]) == (409, "several_waiting")
    assert (unclear.json()["extra"]["ids"][0], len(unclear.json()["extra"]["ids"])) == (
        asked["pending_question"]["id"],
        2,
    )
    body = {"id": asked["pending_question"]["id"], "text": "red", "stream": stream}
    response = await program.post(f"conversations/{place}/answer/", body)
    if stream:
        assert response["content-type"] == "text/event-stream"
        assert response.content.startswith(b"event: response\n")
        told = json.loads(response.content.decode().partition("data: ")[2])
        assert {"type", "conversation", "turn", "seq"} <= set(told)
    else:
        told = response.json()
        assert told["state"] == "waiting"
    assert (told["pending_question"]["text"], told["pending_approval"]) == ("How many?", None)
    body = {"id": told["pending_question"]["id"], "text": "two"}
    done = (await program.post(f"conversations/{place}/answer/", body)).json()
    await scheduler().idle()
    assert (done["state"], done["text"]) == ("done", "Two red ones.")


async def test_an_approval_is_declined_over_rest(
    alice: User, program: Program, model: AnthropicServer
) -> None:
    place, other = await conversation(alice), await conversation(alice)
    model.add(reply(tool("conversation_delete", {"conversation_id": other})), reply("Kept."))
    asked = (await program.post("chat/", {"message": "Delete", "conversation": place})).json()
    call = asked["pending_approval"]["id"]
    wrong = await program.post(f"conversations/{other}/approve/", {"id": call, "decision": "allow"})
    assert wrong.status_code == 404
    done = (
        await program.post(f"conversations/{place}/approve/", {"id": call, "decision": "decline"})
    ).json()
    await scheduler().idle()
    assert (done["state"], done["text"]) == ("done", "Kept.")
    assert (await program.get(f"conversations/{other}/")).status_code == 200


async def test_a_failed_turn_is_a_bad_gateway_with_the_text_so_far(
    program: Program, model: AnthropicServer
) -> None:
    model.add(reply("One two three", cut_after=4), failure(400, "invalid_request_error"))
    response = await program.post("chat/", {"message": "Count"})
    await scheduler().idle()
    assert response.status_code == 502
    error = response.json()
    assert (error["code"], error["extra"]["text"]) == ("stream_cut", "One two ")
    assert set(error["extra"]) == {"conversation", "turn", "text"}


async def test_stop_over_rest(alice: User, program: Program, model: AnthropicServer) -> None:
    held = reply("One two three", hold_after=4)
    model.add(held)
    place = await conversation(alice)
    response = await program.post("chat/", {"message": "Count", "conversation": place, "stream": True})
    async for frame in streamed(response):
        if frame["type"] == "text_delta" and "two" in frame["text"]:
            stopping = await program.post(f"conversations/{place}/stop/", {})
            assert (stopping.status_code, stopping.json()["stopping"]) == (202, 1)
    held.release.set()
    await scheduler().idle()
    assert frame["type"] == "turn_stopped"
    assert (await turn(frame["turn"])).state == "stopped"


async def test_retry_and_replace_over_rest(
    alice: User, program: Program, model: AnthropicServer
) -> None:
    model.add(reply("One."), reply("Two."), reply("Three."))
    place = await conversation(alice)
    await program.post("chat/", {"message": "Hi", "conversation": place})
    assert (await program.post(f"conversations/{place}/retry/", {})).json()["text"] == "Two."
    rows = (await program.get(f"conversations/{place}/messages/")).json()["results"]
    body = {"message": "Hello", "conversation": place, "replaces": rows[0]["id"]}
    assert (await program.post("chat/", body)).json()["text"] == "Three."
    late = await program.post(f"conversations/{place}/retry/", {"replaces": rows[0]["id"]})
    assert (late.status_code, late.json()["code"]) == (409, "not_newest")
    await scheduler().idle()
    rows = (await program.get(f"conversations/{place}/messages/")).json()["results"]
    assert [row["text"] for row in rows] == ["Hello", "Three."]


async def test_the_same_client_id_gets_the_same_answer(program: Program, model: AnthropicServer) -> None:
    body = {"message": "Hi", "client_id": "one"}
    first = (await program.post("chat/", body)).json()
    await scheduler().idle()
    second = (await program.post("chat/", body)).json()
    assert (first["turn"], first["text"]) == (second["turn"], second["text"])
    assert await in_db(lambda: Turn.objects.unscoped().count()) == 1


@pytest.mark.parametrize("stream", [False, True])
async def test_a_message_sent_again_is_answered_with_how_its_turn_stands_now(
    alice: User, program: Program, model: AnthropicServer, stream: bool
) -> None:
    """The program lost the first answer, and meanwhile the user answered on the page."""
    model.add(reply(tool("ask_user", {"question": "Which?"})), reply("Red it is."))
    body = {"message": "Choose", "conversation": await conversation(alice), "client_id": "one"}
    asked = (await program.post("chat/", body)).json()
    assert (await program.post("chat/", body)).json() == asked
    await program.post(f"conversations/{body['conversation']}/answer/", {"text": "red"})
    await scheduler().idle()
    response = await program.post("chat/", {**body, "stream": stream})
    if stream:
        frames = [frame async for frame in streamed(response)]
        assert frames[0]["type"] == "turn_resumed"
        last = frames[-1]
    else:
        last = response.json()
        assert last["state"] == "done"
    assert (last["text"].endswith("Red it is."), last["pending_question"]) == (True, None)


async def test_what_a_turn_asked_before_its_user_went_on_is_not_asked_any_more(
    alice: User, program: Program, model: AnthropicServer
) -> None:
    model.add(reply(tool("ask_user", {"question": "Which?"})), reply("Fine."))
    body = {"message": "Choose", "conversation": await conversation(alice), "client_id": "one"}
    assert (await program.post("chat/", body)).json()["pending_question"]
    await program.post("chat/", {"message": "Never mind", "conversation": body["conversation"]})
    await scheduler().idle()
    again = (await program.post("chat/", body)).json()
    assert (again["state"], again["pending_question"]) == ("done", None)


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("chat/", {}, 400, "wrong_type"),
        ("chat/", {"message": ""}, 400, "empty_text"),
        ("chat/", {"message": 7}, 400, "wrong_type"),
        ("chat/", {"message": "x" * 100_001}, 413, "too_large"),
        ("chat/", {"message": "hi", "stream": "yes"}, 400, "wrong_type"),
        ("chat/", {"message": "hi", "use_memory": 1}, 400, "wrong_type"),
        ("chat/", {"message": "a\x00"}, 400, "invalid_text"),
        ("chat/", {"message": "\ud800"}, 400, "invalid_text"),
        ("chat/", [], 400, "wrong_type"),
        ("chat/", "text", 400, "wrong_type"),
        ("conversations/", {"title": "x" * 201}, 413, "too_large"),
        ("conversations/", {"title": 5}, 400, "wrong_type"),
        ("conversations/", {"use_memory": "no"}, 400, "wrong_type"),
    ],
)
async def test_bad_input_is_refused(
    program: Program, path: str, body: object, status: int, code: str
) -> None:
    response = await program.post(path, body)
    assert (response.status_code, response.json()["code"]) == (status, code)
    assert not await in_db(lambda: Message.objects.unscoped().exists())
    assert not await in_db(lambda: Conversation.objects.unscoped().exists())


def test_a_token_needs_the_scope_to_write(alice: User, api: Any) -> None:
    reader: Client = api(alice, "read")
    for path in ("chat/", "ingest/", "conversations/"):
        response = reader.post(f"/api/v1/{path}", data={}, content_type="application/json")
        assert (response.status_code, response.json()["code"]) == (403, "missing_scope")
    assert reader.get("/api/v1/conversations/").status_code == 200
    assert Client().get("/api/v1/conversations/").status_code == 401


def test_conversations_are_made_listed_renamed_and_deleted(alice: User, api: Any) -> None:
    client: Client = api(alice)
    json_type = "application/json"
    made = client.post("/api/v1/conversations/", {"title": " A  plan "}, content_type=json_type)
    assert (made.status_code, made.json()["title"]) == (201, "A plan")
    place = f"/api/v1/conversations/{made.json()['id']}/"
    assert client.patch(place, {"title": "Another"}, content_type=json_type).json()["title"] == "Another"
    assert client.patch(place, {"title": " "}, content_type=json_type).status_code == 400
    assert client.get("/api/v1/conversations/").json()["results"][0]["title"] == "Another"
    assert client.get("/api/v1/conversations/?q=anoth").json()["count"] == 1
    assert client.get("/api/v1/conversations/?q=nothing").json()["count"] == 0
    assert client.delete(place).status_code == 204
    assert client.get(place).status_code == 404
    assert client.delete(place).status_code == 404


async def test_messages_come_in_pages_and_before_one(
    alice: User, program: Program, model: AnthropicServer
) -> None:
    place = await conversation(alice)
    for number in range(3):
        await program.post("chat/", {"message": f"m{number}", "conversation": place})
        await scheduler().idle()
    path = f"conversations/{place}/messages/"
    first = (await program.get(f"{path}?page_size=4")).json()
    assert (first["count"], [row["text"] for row in first["results"]][::2]) == (6, ["m0", "m1"])
    last = (await program.get(f"{path}?page_size=4&page=2")).json()["results"]
    assert last[0]["text"] == "m2"
    before = (await program.get(f"{path}?before={last[0]['id']}&page_size=2")).json()["results"]
    assert before[0]["text"] == "m1"
    assert (await program.get(f"{path}?before=nonsense")).status_code == 404


async def test_a_missing_message_is_named_by_its_field(program: Program, model: AnthropicServer) -> None:
    for body in ({}, {"message": ""}, {"message": 7}):
        refused = await program.post("chat/", body)
        assert (refused.status_code, refused.json()["extra"]["field"]) == (400, "message")


async def test_a_stream_ends_when_its_token_does(
    alice: User, program: Program, model: AnthropicServer
) -> None:
    held = reply("One two three", hold_after=4)
    model.add(held)
    response = await program.post("chat/", {"message": "Count", "stream": True})
    async for chunk in response.streaming_content:
        if b"two" in chunk:
            await in_db(lambda: tokens_revoke(user_id=alice.id))
    assert chunk.startswith(b"event: error\n")
    assert b'"code":"not_authenticated"' in chunk
    assert not scheduler().hub.feeds
    held.release.set()
    await scheduler().idle()


async def test_so_does_the_stream_of_a_build(alice: User, program: Program, runner: None) -> None:
    def begin() -> Build:
        capability = capability_begin(
            user_id=alice.pk, name="slow", description="Takes long.", input_schema={"type": "object"}
        )
        return Build.objects.create(user=alice, capability=capability, name="slow", description="")

    build = await in_db(begin)
    response = await program.get(f"builds/{build.pk}/events/")
    await in_db(lambda: tokens_revoke(user_id=alice.id))
    last = b"".join([part async for part in response.streaming_content]).decode()
    assert last.startswith("event: error\n")
    assert '"code":"not_authenticated"' in last


async def test_a_user_follows_so_much_at_once_and_no_more(
    alice: User,
    bob: User,
    program: Program,
    runner: None,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Neither a stream too many nor one whose place was taken between the look and the start; nobody else is held up."""
    monkeypatch.setattr(credentials, "FOLLOWED_PER_USER", 2)
    settings.IZZY_THROTTLE = True

    def begin() -> Build:
        capability = capability_begin(
            user_id=alice.pk, name="slow", description="Takes long.", input_schema={"type": "object"}
        )
        build = Build.objects.create(user=alice, capability=capability, name="slow", description="")
        message_add(build=build, type=MessageType.PROGRESS, payload={"text": "x", "stage": "working"})
        return build

    events = f"builds/{(await in_db(begin)).pk}/events/"
    streams = [aiter((await program.get(events)).streaming_content) for _ in range(3)]
    for open_one in streams[:2]:
        assert (await anext(open_one)).startswith(b"event: progress\n")
    assert b'"code":"throttled"' in await anext(streams[2])
    for refused in (await program.get(events), await program.post("chat/", {"message": "Hello"})):
        assert (refused.status_code, refused.json()["code"]) == (429, "throttled")
    assert not await in_db(Message.objects.for_user(alice).exists)
    credentials.follow_check(bob.pk)
    await in_db(lambda: Build.objects.for_user(alice).update(state="failed"))
    for open_one in streams[:2]:
        assert [part async for part in open_one] == []
    assert (await program.get(events)).status_code == 200
