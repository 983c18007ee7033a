"""A whole build at E2B: the real SDK against a loopback server that speaks its protocol and really runs the code."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.builder.builds.running import build_answer
from apps.builder.models import BuilderMessage, State
from apps.builder.runner.pool import BuildPool
from apps.capabilities.catalog.secrets import user_secret_set
from apps.capabilities.runs.execution import capability_execute
from apps.capabilities.sandbox.requirements import PUBLIC_FILES, PUBLIC_INDEX
from apps.core.db.pool import in_db
from tests.builder.scripts import code, last_result, register, write
from tests.builder.test_building import built, request_build
from tests.builder.test_secrets import (
    KEYED,
    NAME,
    ROLL,
    SPILLS,
    VALUE,
    answered,
    everything_kept,
    version_of,
)
from tests.peers.anthropic_server import AnthropicServer, reply, tool
from tests.peers.e2b_server import E2BServer
from tests.waiting import until

HOST = "dice.example.org"
TRIED = code("import main, os; print(main.run({'count': 2, 'sides': 6}), os.environ.get('DICE_KEY'))")


@pytest.fixture(autouse=True)
async def e2b(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[E2BServer]:
    async with E2BServer() as server:
        settings.E2B_API_KEY = server.api_key
        settings.IZZY_SANDBOX = "auto"
        monkeypatch.setenv("E2B_API_URL", server.url)
        monkeypatch.setenv("E2B_SANDBOX_URL", server.url)
        yield server


async def test_a_build_with_a_failing_test_a_host_and_a_secret(
    alice: User, model: AnthropicServer, pool: BuildPool, e2b: E2BServer
) -> None:
    await in_db(lambda: user_secret_set(user_id=alice.pk, name=NAME, value=VALUE))
    build = await in_db(request_build, alice)
    ask = reply(tool("request_network", {"hosts": [HOST], "why": "Random numbers."}))
    wishes: dict[str, Any] = {"permissions": {"hosts": [HOST], "secrets": [NAME]}}
    model.add(
        write(KEYED.replace("sum(rolls)", "total")),
        TRIED,
        reply(tool("run_command", {"command": "ls; cat main.py | head -1"})),
        ask,
        write(SPILLS),
        register(**wishes),
        write(KEYED),
        register(**wishes),
    )

    def allow() -> None:
        build_answer(user_id=alice.pk, build_id=build.pk, decision="allow")

    running = asyncio.ensure_future(answered(build, pool, allow))
    questions = BuilderMessage.objects.unscoped().filter(type="question")

    def asked() -> bool:
        return any(question.payload["kind"] == "network" for question in questions.all())

    await until(lambda: in_db(asked))
    await in_db(allow)
    await running

    done = await built(build)
    assert (done.state, done.version, done.hosts) == (State.DONE, 1, [HOST]), done.reason
    told = [last_result(request) for request in model.messages[1:]]
    assert "KeyError: 'no key'" in told[1]["content"], "a secret is not in the sandbox of the build"
    assert "exit code 0" in told[2]["content"]
    assert "main.py" in told[2]["content"]
    assert told[5]["is_error"]
    assert "ValueError: refused [secret removed]" in told[5]["content"]
    assert VALUE not in await in_db(everything_kept)
    own, *checks = e2b.created
    assert own["network"]["allowOut"] == sorted([PUBLIC_INDEX, PUBLIC_FILES])
    assert sorted([PUBLIC_INDEX, PUBLIC_FILES, HOST]) in [
        sorted(each["allowOut"]) for each in e2b.networks
    ]
    assert [each["network"]["allowOut"] for each in checks[-2:]] == [[HOST], [HOST]]
    assert VALUE not in str(e2b.created)
    assert not e2b.sandboxes, "none is left"
    run = await capability_execute(user_id=alice.pk, name="dice_roller", args=ROLL)
    assert (run.backend, run.result[:5]) == ("e2b", "1d6: ")
    assert (await version_of(alice)).tested_at is not None


async def test_where_e2b_refuses_the_build_fails_with_the_reason(
    alice: User, model: AnthropicServer, pool: BuildPool, e2b: E2BServer
) -> None:
    build = await in_db(request_build, alice)
    e2b.refuse = 429
    model.add(write(), register())
    await pool.idle()
    failed = await built(build)
    assert (failed.state, failed.error_code) == (State.FAILED, "sandbox_unavailable")
    assert failed.reason


async def test_a_sandbox_that_e2b_ended_is_replaced_with_the_same_files(
    alice: User, model: AnthropicServer, pool: BuildPool, e2b: E2BServer
) -> None:
    def lose(request: dict[str, Any]) -> Any:
        for sandbox in list(e2b.sandboxes):
            e2b.kill(sandbox)
        return code("x = 1")

    build = await in_db(request_build, alice)
    model.add(write(), lose, code("import main; print(main.run({'count': 2, 'sides': 6}))"), register())
    await pool.idle()
    assert (await built(build)).state == State.DONE
    calls = await in_db(lambda: list(ToolCall.objects.unscoped().order_by("round")))
    assert [call.is_error for call in calls] == [False, True, False, False], [
        call.result for call in calls
    ]
    assert calls[2].result.startswith("[The sandbox was started anew")
    assert "2d6: " in calls[2].result
