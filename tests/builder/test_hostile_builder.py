"""A builder model that means ill achieves nothing, and gets errors that say what it may do instead."""

import json
from typing import Any

from apps.accounts.models import User
from apps.accounts.services import preferences_update
from apps.agent.tools.results import Scrubber
from apps.builder.models import State
from apps.builder.runner.pool import BuildPool
from apps.builder.workspace.tools import OUTPUT_CHARS, output_text
from apps.capabilities.catalog.secrets import user_secret_set
from apps.capabilities.models import Capability
from apps.capabilities.sandbox.base import CodeResult
from apps.core.db.pool import in_db
from tests.builder.scripts import DICE, code, last_result, register, write
from tests.builder.test_building import built, request_build
from tests.peers.anthropic_server import AnthropicServer, Reply, reply, tool

VALUE = "hunter2-hunter2-hunter2"


async def refusal_of(
    attack: Reply, alice: User, model: AnthropicServer, pool: BuildPool
) -> dict[str, Any]:
    """The result that one hostile call gets; the build goes on to a good end afterwards."""
    build = await in_db(request_build, alice)
    model.add(write(), attack, register())
    await pool.idle()
    done = await built(build)
    assert done.state == State.DONE, done.reason
    return last_result(model.messages[2])


async def test_a_path_outside_is_refused(alice: User, model: AnthropicServer, pool: BuildPool) -> None:
    for path in ("../../etc/cron.d/evil", "/etc/passwd", "a/../../../evil"):
        await in_db(lambda: Capability.objects.unscoped().all().delete())
        model.requests.clear()
        result = await refusal_of(write("evil", path), alice, model, pool)
        assert result["is_error"], path


async def test_a_hundred_megabytes_are_refused(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    huge = DICE + "#" * 300_000
    result = await refusal_of(register(files={"main.py": huge}), alice, model, pool)
    assert result["is_error"]
    assert "at most 200,000" in result["content"]

    model.requests.clear()
    await in_db(lambda: Capability.objects.unscoped().all().delete())
    result = await refusal_of(write("x" * 450_000, "data.txt"), alice, model, pool)
    assert result["is_error"]
    assert "400,000 characters" in result["content"]


def test_a_secret_is_taken_out_of_what_was_printed_before_that_is_cut() -> None:
    cut = (
        OUTPUT_CHARS - OUTPUT_CHARS // 3 - len("hunter2")
    )  # so much of the end stays behind half of the value
    printed = CodeResult(stdout=f"{'x' * OUTPUT_CHARS}{VALUE}{'y' * cut}")
    assert "hunter2" not in output_text(printed, Scrubber([VALUE]))


async def test_no_other_name_can_be_registered(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    result = await refusal_of(register(name="memory_search"), alice, model, pool)
    assert result["is_error"]
    assert "This build is for dice_roller" in result["content"]
    names = await in_db(lambda: list(Capability.objects.unscoped().values_list("name", flat=True)))
    assert names == ["dice_roller"]


async def test_hosts_that_were_not_asked_for_are_refused(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    attack = register(permissions={"hosts": ["evil.example.org"]})
    result = await refusal_of(attack, alice, model, pool)
    assert result["is_error"]
    assert "request_network" in result["content"]


async def test_hosts_are_refused_where_the_user_allows_none(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await in_db(lambda: preferences_update(user_id=alice.pk, build_network="never"))
    wish_hosts = reply(tool("request_network", {"hosts": ["example.org"], "why": "to look"}))
    result = await refusal_of(wish_hosts, alice, model, pool)
    assert result["is_error"]
    assert "allow builds no network" in result["content"]


async def test_any_public_host_is_no_host_of_ones_own_network(
    alice: User, model: AnthropicServer, pool: BuildPool, settings: Any
) -> None:
    settings.IZZY_PRIVATE_HOSTS = ["nas.example.org:5000=127.0.0.1"]
    settings.IZZY_BUILD_ANSWER_SECONDS = 0.2
    await in_db(lambda: preferences_update(user_id=alice.pk, build_network="any"))
    wish_hosts = reply(tool("request_network", {"hosts": ["nas.example.org:5000"], "why": "to look"}))
    result = await refusal_of(wish_hosts, alice, model, pool)
    assert "has not decided" in result["content"]


async def test_secrets_of_user_and_server_do_not_reach_it(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await in_db(lambda: user_secret_set(user_id=alice.pk, name="WEATHER_KEY", value=VALUE))
    spy = code("import os; print(os.environ.get('WEATHER_KEY'), os.environ.get('ANTHROPIC_API_KEY'))")
    result = await refusal_of(spy, alice, model, pool)
    assert VALUE not in json.dumps(model.messages)
    assert "key-for-tests" not in json.dumps(model.messages)
    assert "None None" in result["content"]


async def test_what_is_printed_of_a_secret_is_scrubbed(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await in_db(lambda: user_secret_set(user_id=alice.pk, name="WEATHER_KEY", value=VALUE))
    half, rest = VALUE[:10], VALUE[10:]
    result = await refusal_of(code(f"print({half!r} + {rest!r})"), alice, model, pool)
    assert VALUE not in result["content"]
    assert "[secret removed]" in result["content"]


async def test_a_tool_without_run_or_with_broken_python_is_refused(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    model.add(
        register(files={"main.py": "def go(args): return 'x'"}),
        register(files={"main.py": "def run(args: return"}),
        register(examples=[]),
        write(),
        register(),
    )
    await pool.idle()
    assert (await built(build)).state == State.DONE
    texts = [last_result(request)["content"] for request in model.messages[1:4]]
    assert "must define a function run(args)" in texts[0]
    assert "no valid Python" in texts[1]
    assert "examples" in texts[2]
