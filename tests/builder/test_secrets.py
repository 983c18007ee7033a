"""A tool that needs a secret: tried with it where the user allows that, else as soon as they do; its value is seen by
nobody but the tool."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from pytest_django import Settings

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.builder.builds.requesting import build_change
from apps.builder.builds.running import build_answer
from apps.builder.builds.selectors import messages_after, secrets_wanted
from apps.builder.models import Build, BuilderMessage, DialogueMessage
from apps.builder.runner.job import MAX_FAILURE_CHARS
from apps.builder.runner.pool import BuildPool
from apps.capabilities.api.shapes import CapabilityDetailOutput, capability_opened
from apps.capabilities.catalog.lifecycle import capability_approve
from apps.capabilities.catalog.secrets import user_secret_delete, user_secret_set
from apps.capabilities.catalog.selectors import version_waiting
from apps.capabilities.models import Capability, Execution
from apps.capabilities.runs.examples import versions_test
from apps.capabilities.runs.execution import capability_execute
from apps.capabilities.sandbox.base import SandboxUnavailable
from apps.core.db.pool import in_db
from apps.core.errors import Conflict, InvalidInput
from tests.builder.scripts import DICE, EXAMPLES, last_result, register, write
from tests.builder.test_building import built, delivered, request_build
from tests.capabilities.making import GREETING, make
from tests.peers.anthropic_server import AnthropicServer, Reply, reply, tool
from tests.waiting import until

NAME, VALUE = "DICE_KEY", "correct-horse-battery-4711"
KEYED = DICE.replace(
    "    rolls =",
    f"    import os\n    if len(os.environ.get('{NAME}', '')) != {len(VALUE)}:\n        raise KeyError('no key')\n    rolls =",
)
"""Works with the key alone."""
SPILLS = DICE.replace(
    "    rolls =", f"    import os\n    raise ValueError('refused ' + os.environ['{NAME}'])\n    rolls ="
)
ROLL: dict[str, Any] = {"count": 1, "sides": 6}


def hand_in(*hosts: str, **fields: Any) -> Reply:
    return register(permissions={"secrets": [NAME], "hosts": list(hosts)}, **fields)


async def store(user: User) -> None:
    await in_db(lambda: user_secret_set(user_id=user.pk, name=NAME, value=VALUE))


async def answered(
    build: Build, pool: BuildPool, answer: Callable[[], object], *, kind: str = "secrets"
) -> None:
    """Builds to the end; the first question of that kind is answered in the meantime."""

    def asked() -> bool:
        open_ones = BuilderMessage.objects.unscoped().filter(type="question", read=False)
        return any(question.payload["kind"] == kind for question in open_ones)

    running = asyncio.ensure_future(pool.idle())
    await until(lambda: in_db(asked))
    await in_db(answer)
    await running


async def version_of(user: User) -> Any:
    found = await in_db(lambda: Capability.objects.for_user(user).select_related("current").get())
    assert found.current is not None
    return found.current


async def said_of(build: Build) -> dict[str, Any]:
    """The newest word on the build's card."""
    return dict((await in_db(messages_after, build))[-1].payload)


async def test_with_the_users_yes_it_is_tried_with_the_secret_that_no_one_else_sees(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await store(alice)
    build = await in_db(request_build, alice)
    model.add(write(SPILLS), hand_in(), write(KEYED), hand_in())
    await answered(
        build, pool, lambda: build_answer(user_id=alice.pk, build_id=build.pk, decision="allow")
    )

    refused = last_result(model.messages[2])
    assert refused["is_error"]
    assert "ValueError: refused [secret removed]" in refused["content"]
    kept = await in_db(everything_kept)
    assert VALUE not in json.dumps(model.messages) + kept
    done = await said_of(build)
    assert (done["stage"], done["verified"], done["waits_for_approval"]) == ("ready", True, False)
    version = await version_of(alice)
    assert version.is_approved
    assert version.tested_at is not None
    assert (await built(build)).secrets == {NAME: []}
    run = await capability_execute(user_id=alice.pk, name="dice_roller", args=ROLL)
    assert run.result.startswith("1d6: ")


def everything_kept() -> str:
    tables = (Build, BuilderMessage, DialogueMessage, ToolCall, Execution)
    return "".join(json.dumps(list(table.objects.unscoped().values()), default=str) for table in tables)


async def test_a_secret_that_stands_in_what_it_is_given_does_not_reach_the_model(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    """In the files of the tool, in what the user says, and in what a run printed, also where that is cut."""

    def asked() -> None:
        user_secret_set(user_id=alice.pk, name=NAME, value=VALUE)
        made = make(alice, "greeter", main=f"KEY = '{VALUE}'\n{GREETING}")
        said = f"{VALUE}{'!' * (MAX_FAILURE_CHARS - 9)}"  # of which the last nine letters are within the cut
        run = Execution.objects.create(
            user=alice, capability=made, version=1, trigger="page", state="failed", error_message=said
        )
        feedback = f"Use my key {VALUE} from the secrets."
        build_change(user_id=alice.pk, name="greeter", feedback=feedback, execution_id=str(run.pk))

    await in_db(asked)
    model.fallback = reply("It cannot be done.")
    await pool.idle()

    brief = model.messages[0]["messages"][0]["content"][0]["text"]
    assert "Use my key [secret removed] from the secrets." in brief
    assert "KEY = '[secret removed]'" in brief
    assert "4711" not in brief
    talk = await in_db(lambda: list(DialogueMessage.objects.unscoped().values_list("blocks", flat=True)))
    assert VALUE not in json.dumps(model.messages) + "".join(talk)


async def test_without_the_secret_it_waits_and_is_tried_by_itself_once_all_is_there(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    build = await in_db(request_build, alice)
    model.add(write(KEYED), hand_in())
    await pool.idle()

    assert (await said_of(build))["stage"] == "approval"
    question = next(row for row in await in_db(messages_after, build) if row.type == "question")
    assert question.payload["secrets"] == [NAME]
    assert "Izzy runs the examples then" in (
        await in_db(lambda: ToolCall.objects.unscoped().order_by("-round")[0].result)
    )
    version = await version_of(alice)
    assert version.is_unproven
    await versions_test()
    assert (await version_of(alice)).is_unproven, "nothing runs before the user's yes"

    await in_db(lambda: capability_approve(user_id=alice.pk, capability_id=version.capability_id))
    assert await said_of(build) | {"stage": "secrets"} == await said_of(build)
    assert await in_db(secrets_wanted, await built(build)) == [NAME]
    await store(alice)
    await versions_test()

    assert (await said_of(build))["stage"] == "ready"
    assert not (await version_of(alice)).is_unproven
    assert VALUE not in await in_db(everything_kept)
    assert await in_db(lambda: [run.trigger for run in Execution.objects.for_user(alice)]) == ["retest"]


async def test_a_yes_to_what_is_not_stored_is_refused_in_words(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    model.add(write(KEYED), hand_in())

    def allow() -> None:
        for decision in ("perhaps", None, 1):
            with pytest.raises(InvalidInput):
                build_answer(user_id=alice.pk, build_id=build.pk, decision=decision)
        with pytest.raises(Conflict, match="not stored yet") as refused:
            build_answer(user_id=alice.pk, build_id=build.pk, decision="allow")
        assert refused.value.code == "missing_secret"
        assert secrets_wanted(build) == [NAME]
        user_secret_set(user_id=alice.pk, name=NAME, value=VALUE)
        build_answer(user_id=alice.pk, build_id=build.pk, decision="allow")

    await answered(build, pool, allow)
    assert (await said_of(build))["stage"] == "ready"


async def test_a_no_is_told_to_the_builder_and_not_asked_again(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await store(alice)
    build = await in_db(request_build, alice)
    model.add(write(KEYED), hand_in(), hand_in(), write(), register())
    await answered(
        build, pool, lambda: build_answer(user_id=alice.pk, build_id=build.pk, decision="deny")
    )

    for request in model.messages[2:4]:
        assert f"The user declined {NAME}" in last_result(request)["content"]
    questions = [row for row in await in_db(messages_after, build) if row.type == "question"]
    assert len(questions) == 1
    assert (await version_of(alice)).secrets == []


async def test_a_yes_holds_for_the_hosts_it_was_given_for(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    """A tool that may read a secret and reach nothing does not get a host to send it to by and by."""
    await store(alice)
    build = await in_db(request_build, alice)
    ask = reply(tool("request_network", {"hosts": ["dice.example.org"], "why": "To look."}))
    failing = [{"input": {"count": 1, "sides": 6}, "expect": "never"}]
    model.add(write(KEYED), hand_in(examples=failing), ask, hand_in("dice.example.org"))

    def allow_twice() -> None:
        build_answer(user_id=alice.pk, build_id=build.pk, decision="allow")

    running = asyncio.ensure_future(answered(build, pool, allow_twice))
    await until(lambda: in_db(lambda: wishes(build) == ["secrets", "network"]))
    await in_db(allow_twice)
    await until(lambda: in_db(lambda: wishes(build) == ["secrets", "network", "secrets"]))
    third = [row for row in await in_db(messages_after, build) if row.type == "question"][-1]
    assert third.payload["hosts"] == ["dice.example.org"]
    await in_db(allow_twice)
    await running
    assert (await built(build)).secrets == {NAME: ["dice.example.org"]}
    assert (await version_of(alice)).is_approved


def wishes(build: Build) -> list[str]:
    return [row.payload["kind"] for row in messages_after(build) if row.type == "question"]


async def test_what_cannot_even_be_loaded_is_refused_before_the_user_is_asked(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    build = await in_db(request_build, alice)
    model.add(write("import no_such_package\n" + KEYED), hand_in(), write(KEYED), hand_in())
    await pool.idle()

    refused = last_result(model.messages[2])["content"]
    assert "cannot be loaded" in refused
    assert "No module named 'no_such_package'" in refused
    assert "handed_in" not in refused
    assert "use them in run alone" in refused
    assert await in_db(wishes, build) == ["secrets"]


async def test_a_change_that_asks_for_more_leaves_the_old_version_in_use_until_it_has_proved_itself(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    await in_db(request_build, alice)
    model.add(write(), register())
    await pool.idle()
    change = await in_db(
        lambda: build_change(user_id=alice.pk, name="dice_roller", feedback="With my key.")
    )
    hurrah = KEYED.replace('return f"{count}', 'return f"hurrah {count}')
    model.add(write(hurrah), hand_in(examples=EXAMPLES))
    await pool.idle()

    assert (await said_of(change))["stage"] == "approval"
    first = await version_of(alice)
    assert first.number == 1
    run = await capability_execute(user_id=alice.pk, name="dice_roller", args=ROLL)
    assert run.result.startswith("1d6")
    shown = await in_db(lambda: CapabilityDetailOutput.dump(capability_opened(first.capability)))
    assert (shown["version"], shown["waiting_version"], shown["approved"]) == (1, 2, True)
    with pytest.raises(Conflict):
        await in_db(
            lambda: capability_approve(user_id=alice.pk, capability_id=first.capability_id, version=3)
        )
    await in_db(
        lambda: capability_approve(user_id=alice.pk, capability_id=first.capability_id, version=2)
    )
    assert (await version_of(alice)).number == 1, "it is not in use before its examples have passed"
    await store(alice)
    await versions_test()

    assert (await version_of(alice)).number == 2
    run = await capability_execute(user_id=alice.pk, name="dice_roller", args=ROLL)
    assert run.result.startswith("hurrah 1d6")


async def test_a_change_that_was_allowed_before_it_could_be_tried_leaves_the_old_version_in_use(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await in_db(request_build, alice)
    model.add(write(), register())
    await pool.idle()
    await store(alice)
    change = await in_db(
        lambda: build_change(user_id=alice.pk, name="dice_roller", feedback="With my key.")
    )
    model.add(write(KEYED), hand_in(examples=EXAMPLES))

    @transaction.atomic
    def allow_and_delete() -> None:
        build_answer(user_id=alice.pk, build_id=change.pk, decision="allow")
        user_secret_delete(user_id=alice.pk, name=NAME)

    await answered(change, pool, allow_and_delete)
    assert (await said_of(change))["stage"] == "secrets"
    assert (await version_of(alice)).number == 1, "it is not in use before its examples have passed"
    await store(alice)
    await versions_test()
    assert (await version_of(alice)).number == 2
    assert (await said_of(change))["stage"] == "ready"


async def test_one_that_fails_its_test_stays_aside_and_can_be_repaired(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    await in_db(request_build, alice)
    model.add(write(), register())
    await pool.idle()
    change = await in_db(
        lambda: build_change(user_id=alice.pk, name="dice_roller", feedback="With my key.")
    )
    model.add(write(SPILLS), hand_in(examples=EXAMPLES))
    await pool.idle()
    first = await version_of(alice)
    await store(alice)
    await in_db(
        lambda: capability_approve(user_id=alice.pk, capability_id=first.capability_id, version=2)
    )
    await versions_test()

    told = await said_of(change)
    assert told["stage"] == "failing"
    assert "raised: ValueError: refused [secret removed]" in told["problem"]
    assert (await version_of(alice)).number == 1
    waiting = await in_db(
        version_waiting,
        await in_db(lambda: Capability.objects.for_user(alice).select_related("current").get()),
    )
    assert waiting is not None
    assert waiting.number == 2
    run = await in_db(lambda: Execution.objects.for_user(alice).get(version=2))
    model.requests.clear()
    await in_db(lambda: build_change(user_id=alice.pk, name="dice_roller", execution_id=str(run.pk)))
    model.add(write(), register())
    await pool.idle()
    brief = model.messages[0]["messages"][0]["content"][0]["text"]
    assert "refused [secret removed]" in brief
    assert "os.environ['DICE_KEY']" in brief, "the builder gets the files of the version that failed"
    assert (await version_of(alice)).number == 3


async def test_a_change_goes_on_from_the_version_that_waits(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    await in_db(request_build, alice)
    model.add(write(), register())
    await pool.idle()
    await in_db(lambda: build_change(user_id=alice.pk, name="dice_roller", feedback="With my key."))
    model.add(write(KEYED), hand_in(examples=EXAMPLES))
    await pool.idle()
    model.requests.clear()
    await in_db(lambda: build_change(user_id=alice.pk, name="dice_roller", feedback="Louder."))
    model.add(hand_in(examples=EXAMPLES))
    await pool.idle()

    assert "no key" in model.messages[0]["messages"][0]["content"][0]["text"]
    number = (await version_of(alice)).number
    await in_db(lambda: capability_approve(user_id=alice.pk, capability_id=first_id(alice)))
    await store(alice)
    await versions_test()
    assert (number, (await version_of(alice)).number) == (1, 3)


def first_id(user: User) -> UUID:
    return Capability.objects.for_user(user).get().pk


async def test_those_of_several_users_are_tested_and_none_disturbs_another(
    alice: User, bob: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    builds = [await in_db(request_build, user) for user in (alice, bob)]
    model.fallback = lambda request: hand_in() if len(request["messages"]) > 1 else write(KEYED)
    await pool.idle()
    await store(alice)
    for user in (alice, bob):
        await in_db(lambda: capability_approve(user_id=user.pk, capability_id=first_id(user)))  # noqa: B023
    await versions_test()
    assert [(await said_of(build))["stage"] for build in builds] == ["ready", "secrets"]
    settings.IZZY_SANDBOX = "none"
    await store(bob)
    with pytest.raises(SandboxUnavailable):
        await versions_test()
    assert (await said_of(builds[1]))["stage"] == "secrets", (
        "nothing is noted where nothing could be run"
    )


async def test_a_secret_that_was_deleted_between_yes_and_test_is_waited_for(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await store(alice)
    build = await in_db(request_build, alice)
    model.add(write(KEYED), hand_in())

    def allow_and_forget() -> None:
        build_answer(user_id=alice.pk, build_id=build.pk, decision="allow")
        user_secret_delete(user_id=alice.pk, name=NAME)

    await answered(build, pool, allow_and_forget)
    assert (await said_of(build))["stage"] == "secrets"
    await store(alice)
    await versions_test()
    assert (await said_of(build))["stage"] == "ready"


async def test_a_late_yes_allows_the_hosts_it_was_about_and_no_others(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Settings
) -> None:
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    build = await in_db(request_build, alice)
    asks = [
        reply(tool("request_network", {"hosts": [f"{name}.example.org"], "why": "x"}))
        for name in ("one", "two")
    ]
    held = write()
    held.hold_after = 0
    both = register(permissions={"hosts": ["one.example.org", "two.example.org"]})
    model.add(*asks, held, both, register(permissions={"hosts": ["one.example.org"]}))
    running = asyncio.ensure_future(pool.idle())
    await until(lambda: len(model.messages) >= 3)
    questions = [row for row in await in_db(messages_after, build) if row.type == "question"]
    for question, decision in zip(questions, ("allow", "deny"), strict=True):
        decide = partial(build_answer, user_id=alice.pk, build_id=build.pk, question_id=question.pk)
        await in_db(decide, decision=decision)
    await delivered(build, pool, answers=2)
    held.release.set()
    await running

    told = last_result(model.messages[3])["content"]
    assert "The user has allowed one.example.org meanwhile" in told
    assert "The user has declined two.example.org meanwhile" in told
    assert "declined two.example.org" in last_result(model.messages[4])["content"]
    version = await version_of(alice)
    assert (version.hosts, version.is_approved) == (["one.example.org"], True)
