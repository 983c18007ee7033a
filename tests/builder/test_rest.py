"""Builds over REST: asking, watching from where one was, answering, cancelling, trying again."""

import json
from typing import Any

from apps.accounts.models import User
from apps.builder.builds.ending import build_end
from apps.builder.models import Build
from apps.builder.runner.pool import BuildPool
from apps.core.db.pool import in_db
from tests.builder.scripts import SCHEMA, last_result, register, write
from tests.builder.test_in_conversation import working
from tests.chat.client import program_of
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.waiting import until

ASK: dict[str, Any] = {"name": "dice_roller", "description": "Rolls dice.", "input_schema": SCHEMA}


def parsed(raw: str) -> list[tuple[int, str, dict[str, Any]]]:
    """The events of a stream: (id, event, data)."""
    events = []
    for block in raw.split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            events.append((int(lines["id"]), lines["event"], json.loads(lines["data"])))
    return events


async def stream(program: Any, build: str, after: str = "") -> list[tuple[int, str, dict[str, Any]]]:
    """All events of a build until its end."""
    headers = program.headers | ({"Last-Event-ID": after} if after else {})
    response = await program.client.get(f"/api/v1/builds/{build}/events/", headers=headers)
    assert response["Content-Type"] == "text/event-stream"
    return parsed("".join([part.decode() async for part in response.streaming_content]))


async def test_a_program_asks_watches_and_reads_the_transcript(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    program = await program_of(alice)
    model.add(write(), register())
    async with working(pool):
        asked = await program.post("builds/", ASK)
        assert asked.status_code == 202
        build = asked.json()["build_id"]
        events = await stream(program, build)
    assert [number for number, _, _ in events] == list(range(1, len(events) + 1))
    assert events[-1][1] == "complete"
    assert events[-1][2]["payload"]["version"] == 1
    late = await stream(program, build, after="3")
    assert late == events[3:]
    assert await stream(program, build, after=str(events[-1][0])) == []

    detail = (await program.get(f"builds/{build}/")).json()
    assert detail["state"] == "done"
    assert [call["name"] for each in detail["rounds"] for call in each["tool_calls"]] == [
        "write_file",
        "register_capability",
    ]
    assert detail["usage"]["calls"] == 2
    assert detail["usage"]["output_tokens"] > 0
    brief = (await program.get(f"builds/{build}/?transcript=false")).json()
    assert brief["rounds"] == []
    listed = (await program.get("builds/?state=done&name=dice_roller")).json()
    assert [each["id"] for each in listed["results"]] == [build]
    again = await program.post("builds/", ASK)
    assert (again.status_code, again.json()["status"], again.json()["build_id"]) == (200, "active", None)


async def test_an_answer_reaches_the_builder(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    program = await program_of(alice)
    model.add(reply(tool("ask_user", {"question": "How many sides?"})), write(), register())
    async with working(pool):
        build = (await program.post("builds/", ASK)).json()["build_id"]
        await until(
            lambda: in_db(
                lambda: Build.objects.unscoped().get().messages.filter(type="question").exists()
            )
        )
        answered = await program.post(f"builds/{build}/answer/", {"text": "a hundred"})
        assert answered.status_code == 200
        assert answered.json()["questions"] == []
        await stream(program, build)
    assert last_result(model.messages[1])["content"] == "The user answers: a hundred"


async def test_cancel_and_retry(alice: User, model: AnthropicServer, pool: BuildPool) -> None:
    program = await program_of(alice)
    build = (await program.post("builds/", ASK)).json()["build_id"]
    cancelled = await program.post(f"builds/{build}/cancel/", {})
    assert (cancelled.status_code, cancelled.json()["state"]) == (202, "cancelled")
    assert (await program.post(f"builds/{build}/cancel/", {})).status_code == 409
    again = await program.post(f"builds/{build}/retry/", {})
    assert again.status_code == 202
    assert again.json()["build_id"] != build
    model.add(write(), register())
    await pool.idle()
    done = (await program.get(f"builds/{again.json()['build_id']}/")).json()
    assert done["state"] == "done"
    assert (await program.post(f"builds/{done['id']}/retry/", {})).status_code == 409


async def test_what_does_not_fit_is_refused_in_words(alice: User, bob: User) -> None:
    program, stranger = await program_of(alice), await program_of(bob)
    for body, status in (
        ({}, 400),
        ([], 400),
        (ASK | {"name": "memory_search"}, 400),
        (ASK | {"input_schema": "x"}, 400),
        (ASK | {"input_schema": {"type": "array"}}, 400),
        (ASK | {"description": "x" * 5000}, 413),
        ({"capability": "nothing", "feedback": "x"}, 404),
        ({"capability": 5, "feedback": "x"}, 404),
    ):
        refused = await program.post("builds/", body)
        assert refused.status_code == status, (body, refused.content)
        assert refused.json()["message"]
    build = (await program.post("builds/", ASK)).json()["build_id"]
    for path in ("", "events/"):
        assert (await stranger.get(f"builds/{build}/{path}")).status_code == 404
    for path in ("answer/", "cancel/", "retry/"):
        assert (await stranger.post(f"builds/{build}/{path}", {"text": "x"})).status_code == 404
    assert (await program.post(f"builds/{build}/answer/", {"text": "x"})).status_code == 409
    found = await in_db(lambda: Build.objects.unscoped().get())
    await in_db(lambda: build_end(build=found, code="x", reason="why"))
    assert (await program.get("builds/nonsense/")).status_code == 404
    assert (await program.get("builds/?state=odd")).status_code == 400
