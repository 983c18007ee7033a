"""Asking for builds: once for a name, within limits, each user for themselves; answering and cancelling."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.builder.builds.messages import BuildOrigin
from apps.builder.builds.requesting import build_change, build_request, build_retry, held_up
from apps.builder.builds.running import build_answer, build_cancel, builds_claim, dialogue_add
from apps.builder.builds.selectors import builds_in
from apps.builder.models import Build, BuilderMessage, Kind, State
from apps.builder.runner.pool import BuildPool
from apps.builder.workspace.context import BuildSandbox
from apps.capabilities.catalog.lifecycle import capability_disable
from apps.capabilities.models import Capability, Execution, Status
from apps.capabilities.runs.execution import capability_execute
from apps.core.db.pool import in_db
from apps.core.errors import Conflict, InvalidInput, NotFound, Throttled
from apps.core.ids import uuid7
from apps.core.jobs.worker import beat
from tests.builder.scripts import DICE, SCHEMA, code, register, write
from tests.builder.test_building import built, delivered, request_build
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.waiting import PATIENCE, until

ASK: dict[str, Any] = {"name": "dice_roller", "description": "Rolls dice.", "input_schema": SCHEMA}


async def test_one_under_way_is_joined_and_an_active_one_returned(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    again = await in_db(lambda: build_request(user_id=alice.pk, **ASK))
    assert again.build == build
    model.add(write(), register())
    await pool.idle()

    there = await in_db(lambda: build_request(user_id=alice.pk, **ASK))
    assert (there.status, there.build) == ("active", None)
    assert await in_db(Build.objects.unscoped().count) == 1


async def test_a_failed_and_a_disabled_one_are_built_again(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    first = await in_db(request_build, alice)
    model.fallback = reply("I cannot.")
    await pool.idle()
    assert (await built(first)).state == State.FAILED

    second = (await in_db(lambda: build_retry(user_id=alice.pk, build_id=first.pk))).build
    assert second is not None
    model.add(write(), register())
    await pool.idle()
    done = await built(second)
    assert (done.state, done.capability.status) == (State.DONE, Status.ACTIVE)

    await in_db(lambda: capability_disable(user_id=alice.pk, capability_id=done.capability_id))
    third = await in_db(request_build, alice)
    model.add(write(), register())
    await pool.idle()
    done = await built(third)
    assert (done.version, done.capability.status) == (2, Status.ACTIVE)


async def test_two_users_who_build_the_same_name_do_not_meet(
    alice: User, bob: User, model: AnthropicServer, pool: BuildPool
) -> None:
    hers, his = await in_db(request_build, alice), await in_db(request_build, bob)
    assert hers.capability_id != his.capability_id
    model.fallback = lambda request: register() if len(request["messages"]) > 1 else write()
    await pool.idle()

    for user, build in ((alice, hers), (bob, his)):
        assert (await built(build)).state == State.DONE
        assert await in_db(Capability.objects.for_user(user).count) == 1
    with pytest.raises(NotFound):
        await in_db(lambda: build_cancel(user_id=bob.pk, build_id=hers.pk))
    with pytest.raises(NotFound):
        await in_db(lambda: build_retry(user_id=bob.pk, build_id=hers.pk))
    with pytest.raises(NotFound):
        await in_db(lambda: build_answer(user_id=bob.pk, build_id=hers.pk, text="x"))


@pytest.mark.parametrize("name", ["memory_search", "Weather", "x", "cap_dice", "a" * 60, "../etc"])
def test_names_that_cannot_be_are_refused(name: str, alice: User) -> None:
    with pytest.raises(InvalidInput):
        build_request(user_id=alice.pk, **(ASK | {"name": name}))
    assert not Capability.objects.unscoped().exists()


def test_builds_of_a_day_are_limited(alice: User, bob: User, settings: Settings) -> None:
    settings.IZZY_BUILDS_PER_DAY = 2
    request_build(alice, name="first_one")
    request_build(alice, name="second_one")
    with pytest.raises(Throttled, match="2 builds within a day") as refusal:
        request_build(alice, name="third_one")
    assert refusal.value.extra["retry_after"]
    assert not Capability.objects.for_user(alice).filter(name="third_one").exists()
    request_build(bob, name="third_one")


def test_builds_of_one_user_at_once_are_limited_and_the_rest_waits(
    alice: User, bob: User, settings: Settings
) -> None:
    settings.IZZY_BUILDS_PER_USER = 2
    mine = [request_build(alice, name=f"tool_{number}") for number in range(4)]
    his = request_build(bob)
    assert builds_claim(runner="a", limit=10) == [mine[0].pk, mine[1].pk, his.pk]
    assert builds_claim(runner="a", limit=10) == []
    assert "the worker is back" in held_up(mine[3])
    beat()
    assert held_up(mine[3]).startswith("2 builds of yours are under way")
    settings.IZZY_BUILDS = 3
    assert held_up(request_build(bob, name="his_second")).startswith("Other builds are under way")
    build_cancel(user_id=alice.pk, build_id=mine[2].pk)
    Build.objects.unscoped().filter(pk=mine[0].pk).update(state=State.DONE)
    assert builds_claim(runner="a", limit=1) == [mine[3].pk]


@pytest.mark.django_db(transaction=True)
def test_two_workers_together_keep_to_the_limit_of_a_user(alice: User, settings: Settings) -> None:
    settings.IZZY_BUILDS_PER_USER = 1
    for number in range(4):
        request_build(alice, name=f"tool_{number}")
    both = threading.Barrier(2)

    def claim(runner: str) -> list[UUID]:
        both.wait(PATIENCE)
        try:
            return builds_claim(runner=runner, limit=4)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as workers:
        claimed = [build for found in workers.map(claim, ["one", "other"]) for build in found]
    assert len(claimed) == 1


def test_a_build_held_from_before_the_clock_was_set_back_is_taken_up(alice: User) -> None:
    build = request_build(alice)
    assert builds_claim(runner="dead", limit=1) == [build.pk]
    Build.objects.unscoped().update(lease_until=timezone.now() + timedelta(hours=3))
    assert builds_claim(runner="new", limit=1) == [build.pk]


async def test_a_build_over_its_tokens_or_its_time_fails_with_the_limit(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    settings.IZZY_BUILD_TOKENS = 100
    build = await in_db(request_build, alice)
    model.fallback = write()
    await pool.idle()
    failed = await built(build)
    assert (failed.error_code, len(model.messages)) == ("too_many_tokens", 1)

    settings.IZZY_BUILD_TOKENS, settings.IZZY_BUILD_SECONDS = 10**9, 0.5
    slow = await in_db(lambda: request_build(alice, name="slow_tool"))
    model.fallback = code("import time; time.sleep(30)")
    await pool.idle()
    failed = await built(slow)
    assert failed.error_code == "timed_out"
    calls = await in_db(lambda: list(ToolCall.objects.unscoped().filter(turn_id=slow.pk)))
    assert all(call.state == "done" for call in calls)


async def test_a_cancelled_build_stops_and_leaves_nothing(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    model.fallback = code("import time; time.sleep(60)")
    running = asyncio.ensure_future(pool.run())
    await until(lambda: in_db(lambda: ToolCall.objects.unscoped().filter(state="running").exists()))
    await in_db(lambda: build_cancel(user_id=alice.pk, build_id=build.pk))
    await until(lambda: in_db(lambda: not Build.objects.unscoped().get(pk=build.pk).is_open))
    ended = await built(build)
    pool.stop()
    await running

    assert (ended.state, ended.capability.status) == (State.CANCELLED, Status.FAILED)
    with pytest.raises(Conflict):
        await in_db(lambda: build_cancel(user_id=alice.pk, build_id=build.pk))


async def test_a_cancelled_build_has_time_to_end_its_sandbox(
    alice: User, model: AnthropicServer, pool: BuildPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At E2B that takes longer than the pool waits between two looks."""
    closing, goes_on, close = asyncio.Event(), asyncio.Event(), BuildSandbox.close
    ended: list[bool] = []

    async def slowly(sandbox: BuildSandbox) -> None:
        closing.set()
        await goes_on.wait()
        await close(sandbox)
        ended.append(await in_db(lambda: not Build.objects.unscoped().get(pk=build.pk).is_open))

    monkeypatch.setattr(BuildSandbox, "close", slowly)
    build = await in_db(request_build, alice)
    model.fallback = code("import time; time.sleep(60)")
    await pool.look()
    await until(lambda: in_db(lambda: ToolCall.objects.unscoped().filter(state="running").exists()))
    await in_db(lambda: build_cancel(user_id=alice.pk, build_id=build.pk))
    await pool.look()
    await closing.wait()
    for _ in range(3):
        await pool.look()
        await asyncio.sleep(0.05)
    goes_on.set()
    await pool.idle()
    assert (ended, (await built(build)).state) == ([False], State.CANCELLED)


async def test_a_change_leaves_the_old_version_until_the_new_one_is_verified(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await in_db(request_build, alice)
    model.add(write(), register())
    await pool.idle()
    change = await in_db(
        lambda: build_change(user_id=alice.pk, name="dice_roller", feedback="Say hooray first.")
    )
    held = register(examples=[{"input": {"count": 1, "sides": 6}, "expect": "hooray"}])
    held.hold_after = 0
    model.add(write(DICE.replace('return f"{count}', 'return f"hooray {count}')), held)
    running = asyncio.ensure_future(pool.idle())
    await until(lambda: len(model.messages) >= 4)
    meanwhile = await capability_execute(
        user_id=alice.pk, name="dice_roller", args={"count": 1, "sides": 6}
    )
    held.release.set()
    await running
    after = await capability_execute(user_id=alice.pk, name="dice_roller", args={"count": 1, "sides": 6})

    assert not meanwhile.result.startswith("hooray")
    assert after.result.startswith("hooray")
    done = await built(change)
    assert (done.kind, done.version) == (Kind.CHANGE, 2)
    brief = model.messages[2]["messages"][0]["content"][0]["text"]
    assert "Say hooray first." in brief
    assert "random.randint" in brief


async def test_a_repair_knows_the_failed_run(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await in_db(request_build, alice)
    model.add(write(), register())
    await pool.idle()
    failed = await capability_execute(
        user_id=alice.pk, name="dice_roller", args={"count": 10**9, "sides": 1}
    )
    run = await in_db(lambda: Execution.objects.for_user(alice).get(pk=failed.pk))
    await in_db(
        lambda: (
            Execution.objects.for_user(alice)
            .filter(pk=run.pk)
            .update(
                state="failed", error_code="raised", error_message="Traceback: MemoryError in line 8"
            )
        )
    )
    repair = await in_db(
        lambda: build_change(user_id=alice.pk, name="dice_roller", execution_id=str(run.pk))
    )
    model.add(write(), register())
    await pool.idle()

    assert (await built(repair)).version == 2
    brief = model.messages[2]["messages"][0]["content"][0]["text"]
    assert "MemoryError in line 8" in brief
    assert "1000000000" in brief


async def test_a_build_that_was_interrupted_goes_on_from_its_rows(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    first = BuildPool(runner="first")
    held = register()
    held.hold_after = 0
    model.add(write(), held)
    running = asyncio.ensure_future(first.run())
    await until(lambda: len(model.messages) >= 2)
    first.stop()
    await running
    held.release.set()
    waiting = await built(build)
    assert (waiting.state, waiting.runner, waiting.attempt) == (State.RUNNING, "", 0)

    model.add(code("import main; print(main.run({'count': 1, 'sides': 6}))"), register())
    await pool.idle()

    assert (await built(build)).state == State.DONE
    resumed = model.messages[2]["messages"]
    assert resumed[: len(model.messages[1]["messages"])] == model.messages[1]["messages"]
    tried = model.messages[3]["messages"][-1]["content"][0]["content"]
    assert tried.startswith("[The sandbox was started anew")
    assert "1d6: " in tried


async def test_a_build_that_dies_with_its_process_again_and_again_fails_with_a_reason(
    alice: User, model: AnthropicServer
) -> None:
    build = await in_db(request_build, alice)
    for _ in range(3):
        assert await in_db(lambda: builds_claim(runner="dead", limit=1)) == [build.pk]
        await in_db(lambda: Build.objects.unscoped().update(lease_until="2020-01-01T00:00:00Z"))
    assert await in_db(lambda: builds_claim(runner="new", limit=1)) == []
    failed = await built(build)
    assert (failed.state, failed.error_code) == (State.FAILED, "interrupted")
    assert "3 times" in failed.reason


async def test_an_answer_that_comes_late_is_told_with_the_next_result(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    build = await in_db(request_build, alice)
    held = write()
    held.hold_after = 0
    model.add(reply(tool("ask_user", {"question": "Which?"})), held, register())
    running = asyncio.ensure_future(pool.idle())
    await until(lambda: len(model.messages) >= 2)
    await in_db(lambda: build_answer(user_id=alice.pk, build_id=build.pk, text="the red one"))
    await delivered(build, pool, answers=1)
    held.release.set()
    await running

    told = model.messages[2]["messages"][-1]["content"][0]["content"]
    assert told.startswith("[The user has answered your earlier question meanwhile: the red one]")


async def test_an_answer_outlives_the_process_that_fetched_it(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    build = await in_db(request_build, alice)
    first = BuildPool(runner="first")
    held = write()
    held.hold_after = 0
    model.add(reply(tool("ask_user", {"question": "Which?"})), held)
    running = asyncio.ensure_future(first.run())
    await until(lambda: len(model.messages) >= 2)
    await in_db(lambda: build_answer(user_id=alice.pk, build_id=build.pk, text="the red one"))
    await delivered(build, first, answers=1)
    first.stop()
    await running
    held.release.set()

    again = write()
    again.hold_after = 0
    model.add(again, register())
    running = asyncio.ensure_future(pool.idle())
    await until(lambda: len(model.messages) >= 3)
    await delivered(build, pool, answers=1)
    again.release.set()
    await running
    assert "the red one" in model.messages[3]["messages"][-1]["content"][0]["content"]


@pytest.mark.parametrize(
    "meanwhile",
    ["I will go on.", tool("ask_user", {"question": "How many?"})],
    ids=["who is reminded", "who asks again"],
)
async def test_an_answer_that_came_before_other_messages_outlives_the_process_too(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings, meanwhile: Any
) -> None:
    """The reminder, and the result of a question that nobody answers, are stored after it and do not tell of it."""
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    build = await in_db(request_build, alice)
    first = BuildPool(runner="first")
    saying, held = reply(meanwhile), write()
    saying.hold_after = held.hold_after = 0
    model.add(reply(tool("ask_user", {"question": "Which?"})), saying, held)
    running = asyncio.ensure_future(first.run())
    await until(lambda: len(model.messages) >= 2)
    await in_db(lambda: build_answer(user_id=alice.pk, build_id=build.pk, text="the red one"))
    await delivered(build, first, answers=1)
    saying.release.set()
    await until(lambda: len(model.messages) >= 3)
    first.stop()
    await running
    held.release.set()

    again = write()
    again.hold_after = 0
    model.add(again, register())
    for _ in range(2):  # which takes it up, and then hands in what its user has said
        await pool.look()
    assert len(pool.jobs[build.pk].mailbox.answers) == 1
    again.release.set()
    await pool.idle()
    results = [
        block["content"]
        for message in model.messages[4]["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert [result for result in results if "the red one" in result] == results[-1:]
    assert not await in_db(
        lambda: BuilderMessage.objects.unscoped().filter(type="answer", read=False).exists()
    )


def test_a_process_that_lost_a_build_writes_no_more_of_it(alice: User) -> None:
    build = request_build(alice)
    builds_claim(runner="frozen", limit=1)
    frozen = Build.objects.for_user(alice).get()
    said = [{"type": "text", "text": "Hello."}]
    assert dialogue_add(build=frozen, role="user", blocks=said, round=0)
    Build.objects.unscoped().update(lease_until=timezone.now() - timedelta(seconds=1))
    assert builds_claim(runner="next", limit=1) == [build.pk]
    assert not dialogue_add(build=frozen, role="assistant", blocks=said, round=1)
    assert dialogue_add(
        build=Build.objects.for_user(alice).get(), role="assistant", blocks=said, round=1
    )


def test_answers_that_fit_nothing_are_refused(alice: User) -> None:
    build = request_build(alice)
    with pytest.raises(Conflict):
        build_answer(user_id=alice.pk, build_id=build.pk, text="yes")
    with pytest.raises(NotFound):
        build_answer(user_id=alice.pk, build_id=build.pk, question_id="nonsense", text="yes")
    question = BuilderMessage.objects.create(
        user=alice, build=build, number=50, direction="to_user", type="question",
        payload={"kind": "network", "hosts": ["a.example.org"]},
    )  # fmt: skip
    for decision in (None, "", "perhaps", 5):
        with pytest.raises(InvalidInput):
            build_answer(user_id=alice.pk, build_id=build.pk, question_id=question.pk, decision=decision)
    build_answer(user_id=alice.pk, build_id=build.pk, question_id=question.pk, decision="Approve")
    assert Build.objects.unscoped().get().hosts == ["a.example.org"]
    with pytest.raises(Conflict):
        build_answer(user_id=alice.pk, build_id=build.pk, question_id=question.pk, decision="deny")


def test_an_attempt_takes_the_place_of_the_failed_one_before_and_of_no_other(alice: User) -> None:
    here, turn, other = uuid7(), uuid7(), uuid7()
    made = []
    for asked in (turn, other):
        origin = BuildOrigin(conversation_id=here, turn_id=asked)
        made.append(build_request(user_id=alice.pk, **ASK, origin=origin).build)
    first = made[0]
    assert first is not None
    build_cancel(user_id=alice.pk, build_id=first.pk)
    again = build_retry(user_id=alice.pk, build_id=first.pk).build
    assert again is not None
    listed = [(row["turn"], row["build_id"], row["replaces"]) for row in builds_in(alice.pk, here)]
    assert sorted(listed) == sorted(
        [
            (str(turn), str(first.pk), None),
            (str(other), str(first.pk), None),
            (str(turn), str(again.pk), str(first.pk)),
            (str(other), str(again.pk), str(first.pk)),
        ]
    )
    assert builds_in(alice.pk, uuid7()) == []
