"""A build seen from its conversation: its messages as events, its end told, and going on by itself."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.builder.builds.requesting import build_retry
from apps.builder.builds.running import build_answer
from apps.builder.models import Build, State
from apps.builder.runner.pool import BuildPool
from apps.capabilities.catalog.lifecycle import capability_approve
from apps.capabilities.catalog.secrets import user_secret_set
from apps.capabilities.models import Capability
from apps.capabilities.runs.examples import versions_test
from apps.chat.models import Message
from apps.chat.turns.scheduler import scheduler
from apps.core.db.pool import in_db
from tests.builder.scripts import SCHEMA, Cast, last_result, register, write
from tests.chat.client import Frame, Socket, connected
from tests.peers.anthropic_server import AnthropicServer, reply, tool

WISH = reply(
    tool(
        "request_capability",
        {"name": "dice_roller", "description": "Rolls dice.", "input_schema": SCHEMA},
    )
)
PROMISE = reply("I am building a dice roller for you.")


@pytest.fixture(autouse=True)
async def _quiet() -> AsyncIterator[None]:
    yield
    await scheduler().close()


@asynccontextmanager
async def working(pool: BuildPool) -> AsyncIterator[None]:
    """The worker's part beside the test."""
    task = asyncio.ensure_future(pool.run())
    try:
        yield
    finally:
        pool.stop()
        await task


async def build_message(socket: Socket, fits: Callable[[dict[str, Any]], bool]) -> Frame:
    """The first message of a build that fits: also one that came while something else was waited for."""
    for frame in socket.seen:
        if frame["type"] == "build" and fits(frame["message"]):
            return frame
    while True:
        frame = await socket.until("build")
        if fits(frame["message"]):
            return frame


def of_type(kind: str) -> Callable[[dict[str, Any]], bool]:
    return lambda message: message["type"] == kind


async def test_the_page_gets_every_message_once_and_the_end_is_told(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    cast = Cast(chat=[WISH, PROMISE, reply("3d6 it is.")], builder=[write(), register()])
    model.fallback = cast
    async with connected(alice) as socket, working(pool):
        queued = await socket.say("Build me a dice roller")
        asked = await socket.ended()
        assert asked["build_id"]
        done = await build_message(socket, of_type("complete"))
        told = await socket.ended()

    assert done["turn"] == queued["turn"]
    frames = [frame for frame in socket.seen if frame["type"] == "build"]
    assert [frame["message"]["number"] for frame in frames] == list(range(1, len(frames) + 1))
    assert {frame["build_id"] for frame in frames} == {asked["build_id"]}
    numbers = [frame["seq"] for frame in socket.seen if frame["type"] != "html"]
    assert numbers == sorted(set(numbers))
    assert told["text"].startswith("**dice_roller** is ready.")
    assert len(cast.chat_requests) == 2, "telling the end asks no model"


async def test_the_next_request_has_the_tool_and_knows_what_happened(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    roll = reply(tool("cap_dice_roller", {"count": 3, "sides": 6}))
    cast = Cast(chat=[WISH, PROMISE, roll, reply("You rolled.")], builder=[write(), register()])
    model.fallback = cast
    async with connected(alice) as socket, working(pool):
        queued = await socket.say("Build me a dice roller")
        await socket.ended()
        await socket.ended()
        await socket.say("Roll 3d6", conversation=queued["conversation"])
        answer = await socket.ended()

    third = cast.chat_requests[2]
    assert third["tools"][-1]["name"] == "cap_dice_roller"
    assert third["tools"][: len(cast.chat_requests[0]["tools"])] == cast.chat_requests[0]["tools"]
    roles = [message["role"] for message in third["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    words = json.dumps(third["messages"])
    assert "From Izzy, not from the user" in words
    assert "3d6: " in last_result(cast.chat_requests[3])["content"]
    assert answer["text"] == "You rolled."


async def test_it_goes_on_by_itself_where_the_user_wishes(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await in_db(lambda: preferences_update(user_id=alice.pk, build_continue=True))
    roll = reply(tool("cap_dice_roller", {"count": 3, "sides": 6}))
    cast = Cast(chat=[WISH, PROMISE, roll, reply("You rolled a nine.")], builder=[write(), register()])
    model.fallback = cast
    async with connected(alice) as socket, working(pool):
        await socket.say("Roll 3d6 with a dice roller of your own")
        await socket.ended()
        went_on = await socket.ended()

    assert went_on["text"] == "You rolled a nine."
    assert [call["name"] for call in went_on["tool_calls"]] == ["cap_dice_roller"]
    assert "go on by yourself" in json.dumps(cast.chat_requests[2]["messages"][-1])


async def test_every_conversation_that_asked_is_told(
    alice: User, bob: User, model: AnthropicServer, pool: BuildPool
) -> None:
    """A build under way is joined: its card and its end are there too, and so are those of the next attempt."""
    cast = Cast(chat=[WISH, PROMISE, WISH, PROMISE], builder=[reply("No."), reply("No.")])
    model.fallback = cast
    async with connected(alice) as first, connected(alice) as second, connected(bob) as other:
        asked = await first.say("Build me a dice roller")
        await first.ended()
        joined = await second.say("I need to roll dice")
        await second.ended()
        build = await in_db(lambda: Build.objects.for_user(alice).get())
        async with working(pool):
            for socket, turn in ((first, asked), (second, joined)):
                failed = await build_message(socket, of_type("error"))
                assert (failed["turn"], failed["build_id"]) == (turn["turn"], str(build.pk))
                assert (await socket.ended())["text"] == "I could not build **dice_roller**. No."
                numbers = [
                    frame["message"]["number"] for frame in socket.seen if frame["type"] == "build"
                ]
                assert numbers == list(range(1, len(numbers) + 1))

            cast.builder.extend([write(), register()])
            again = (await in_db(lambda: build_retry(user_id=alice.pk, build_id=build.pk))).build
            assert again is not None
            for socket, turn in ((first, asked), (second, joined)):
                done = await build_message(socket, of_type("complete"))
                assert (done["turn"], done["build_id"]) == (turn["turn"], str(again.pk))
                assert (await socket.ended())["text"].startswith("**dice_roller** is ready.")
        snapshot = await second.snapshot(joined["conversation"])
        assert [each["build_id"] for each in snapshot["builds"]] == [str(build.pk), str(again.pk)]
        assert not [frame for frame in other.seen if frame["type"] == "build"]


async def test_a_failed_build_is_told_with_its_reason(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    cannot = reply("It needs a paid service.")
    cast = Cast(chat=[WISH, PROMISE], builder=[cannot, cannot, cannot])
    model.fallback = cast
    async with connected(alice) as socket, working(pool):
        await socket.say("Build me a dice roller")
        await socket.ended()
        told = await socket.ended()

    assert told["text"] == "I could not build **dice_roller**. It needs a paid service."


async def test_a_notice_neither_declines_a_question_nor_goes_ahead_of_it(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    held = register()
    held.hold_after = 0
    ask = reply(tool("ask_user", {"question": "Which colour?"}))
    cast = Cast(chat=[WISH, PROMISE, ask, reply("Red it is.")], builder=[write(), held])
    model.fallback = cast
    async with connected(alice) as socket, working(pool):
        queued = await socket.say("Build me a dice roller")
        await socket.ended()
        await socket.say("Paint it", conversation=queued["conversation"])
        question = await socket.until("question")
        await socket.ended()
        held.release.set()
        await build_message(socket, of_type("complete"))
        await socket.send("answer", id=question["id"], text="red")
        first, second = await socket.ended(), await socket.ended()

    assert first["text"] == "Red it is."
    assert second["text"].startswith("**dice_roller** is ready.")


async def test_the_answer_typed_on_the_page_reaches_the_builder(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    ask = reply(tool("ask_user", {"question": "How many sides at most?"}))
    cast = Cast(chat=[WISH, PROMISE], builder=[ask, write(), register()])
    model.fallback = cast
    async with connected(alice) as socket, working(pool):
        await socket.say("Build me a dice roller")
        question = await build_message(socket, of_type("question"))
        await in_db(
            lambda: build_answer(user_id=alice.pk, build_id=question["build_id"], text="a hundred")
        )
        await build_message(socket, of_type("complete"))

    assert last_result(cast.builder_requests[1])["content"] == "The user answers: a hundred"
    messages = [frame["message"] for frame in socket.seen if frame["type"] == "build"]
    assert ("answer", "to_builder") in [(each["type"], each["direction"]) for each in messages]


async def test_a_builder_without_an_answer_goes_on(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Any
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.3
    ask = reply(tool("ask_user", {"question": "How many sides at most?"}))
    cast = Cast(chat=[WISH, PROMISE], builder=[ask, write(), register()])
    model.fallback = cast
    async with connected(alice) as socket, working(pool):
        await socket.say("Build me a dice roller")
        await build_message(socket, of_type("complete"))

    assert "has not answered" in last_result(cast.builder_requests[1])["content"]
    build = await in_db(lambda: Build.objects.for_user(alice).get())
    assert build.state == State.DONE


async def test_no_word_of_a_build_counts_as_the_users_own(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    cast = Cast(chat=[WISH, PROMISE], builder=[write(), register()])
    model.fallback = cast
    async with connected(alice) as socket, working(pool):
        queued = await socket.say("Build me a dice roller")
        await socket.ended()
        await socket.ended()
        snapshot = await socket.snapshot(queued["conversation"])

    said = [(message["role"], message["text"]) for message in snapshot["messages"]]
    assert [text for role, text in said if role == "user"] == ["Build me a dice roller"]
    notice = await in_db(lambda: Message.objects.for_user(alice).get(kind="notice"))
    assert (notice.text, notice.captured, notice.indexed) == ("", True, True)


@pytest.mark.parametrize("goes_on", [False, True])
async def test_what_had_to_wait_is_told_when_it_has_passed_its_test(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings, goes_on: bool
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    await in_db(lambda: preferences_update(user_id=alice.pk, build_continue=goes_on))
    keyed = register(permissions={"secrets": ["DICE_KEY"]})
    cast = Cast(chat=[WISH, PROMISE, reply("You rolled a nine.")], builder=[write(), keyed])
    model.fallback = cast
    async with connected(alice) as socket, working(pool):
        await socket.say("Build me a dice roller")
        await socket.ended()
        told = await socket.ended()
        assert "it asks to use the secret DICE_KEY" in told["text"]
        tool = await in_db(lambda: Capability.objects.for_user(alice).get().pk)
        await in_db(lambda: capability_approve(user_id=alice.pk, capability_id=tool))
        await build_message(socket, lambda message: message["payload"].get("stage") == "secrets")
        await in_db(lambda: user_secret_set(user_id=alice.pk, name="DICE_KEY", value="a-key-of-dice"))
        await versions_test()
        await build_message(socket, lambda message: message["payload"].get("stage") == "ready")
        told = await socket.ended()

    expected = "You rolled a nine." if goes_on else "**dice_roller** is ready. Rolls dice."
    assert told["text"] == expected
    assert "a-key-of-dice" not in json.dumps(model.messages)
