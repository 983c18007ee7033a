"""From the request to a verified capability, over the real SDK and in a real sandbox."""

from typing import Any

import pytest

from apps.accounts.models import User
from apps.agent.models import ToolCall
from apps.builder.builds.requesting import build_change, build_request
from apps.builder.builds.selectors import messages_after
from apps.builder.models import Build, State
from apps.builder.runner.pool import BuildPool
from apps.capabilities.catalog.drafts import MAIN
from apps.capabilities.catalog.files import files_read
from apps.capabilities.models import Capability, Status
from apps.capabilities.runs.execution import capability_execute
from apps.core.db.pool import in_db
from tests.builder.scripts import DICE, EXAMPLES, SCHEMA, code, last_result, register, write
from tests.capabilities.making import make
from tests.peers.anthropic_server import AnthropicServer, failure, reply, tool
from tests.waiting import until


def request_build(user: User, **fields: Any) -> Build:
    values = {"name": "dice_roller", "description": "Rolls dice.", "input_schema": SCHEMA, **fields}
    build = build_request(user_id=user.pk, **values).build
    assert build is not None
    return build


async def built(build: Build) -> Build:
    return await in_db(lambda: Build.objects.unscoped().select_related("capability").get(pk=build.pk))


async def delivered(build: Build, pool: BuildPool, answers: int) -> None:
    """Until that many answers that its user gave late are with the builder, who is told of them with its next result."""
    await until(lambda: len(pool.jobs[build.pk].mailbox.answers) == answers)


async def told(build: Build) -> list[tuple[str, str]]:
    rows = await in_db(messages_after, build)
    return [(row.type, str(row.payload.get("text", ""))) for row in rows]


async def test_a_capability_is_built_verified_and_runs(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    assert (await built(build)).capability.status == Status.BUILDING
    model.add(write(), code("import main; print(main.run({'count': 2, 'sides': 6}))"), register())

    await pool.idle()

    done = await built(build)
    assert (done.state, done.version, done.capability.status) == (State.DONE, 1, Status.ACTIVE), (
        done.reason
    )
    result = model.messages[2]["messages"][-1]["content"][0]
    assert "2d6:" in result["content"]
    execution = await capability_execute(
        user_id=alice.pk, name="dice_roller", args={"count": 3, "sides": 6}
    )
    assert execution.result.startswith("3d6: ")
    messages = await told(build)
    assert messages[0] == ("progress", "Asked for")
    assert messages[-1] == ("complete", "dice_roller is ready.")
    assert ("progress", "Writing main.py") in messages


async def test_no_call_stays_open_where_the_process_stops_right_after_registering(
    alice: User, model: AnthropicServer, pool: BuildPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = await in_db(request_build, alice)
    behind = tool("report_progress", {"text": "Done"})
    model.add(
        reply(tool("register_capability", {"examples": EXAMPLES, "files": {"main.py": DICE}}), behind)
    )
    monkeypatch.setattr("apps.agent.services.toolcall_finish", lambda **_: False)

    await pool.idle()

    rows = await in_db(
        lambda: list(ToolCall.objects.unscoped().filter(turn_id=build.pk).order_by("position"))
    )
    assert [(row.state, row.is_error) for row in rows] == [("done", False), ("done", True)]
    assert rows[0].result == "Registered dice_roller in version 1. The build is done."
    assert rows[0].duration_ms > 0
    assert (await built(build)).state == State.DONE


async def test_the_model_gets_its_seven_tools_and_nothing_else(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await in_db(request_build, alice)
    model.add(reply(tool("memory_search", {"query": "everything"})), write(), register())

    await pool.idle()

    sent = model.messages[0]
    assert sorted(each["name"] for each in sent["tools"]) == [
        "ask_user", "register_capability", "report_progress", "request_network", "run_code", "run_command",
        "write_file",
    ]  # fmt: skip
    assert sent["max_tokens"] == 4096
    assert "def run(args: dict) -> str" in sent["system"][0]["text"]
    refused = model.messages[1]["messages"][-1]["content"][0]
    assert refused["is_error"]
    assert "no tool called memory_search" in refused["content"]


async def test_a_failing_example_is_refused_with_the_reason_and_can_be_corrected(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    model.add(write(DICE.replace("sum(rolls)", "total")), register(), write(), register())

    await pool.idle()

    refusal = model.messages[2]["messages"][-1]["content"][0]
    assert refusal["is_error"]
    assert "Example 1" in refusal["content"]
    assert "NameError" in refusal["content"]
    assert (await built(build)).state == State.DONE


async def test_twenty_five_rounds_without_registration_fail_with_the_last_error(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    model.fallback = code("1 / 0")

    await pool.idle()

    failed = await built(build)
    assert (failed.state, failed.error_code) == (State.FAILED, "max_rounds")
    assert "25 rounds" in failed.reason
    assert "ZeroDivisionError" in failed.reason
    assert len(model.messages) == 25
    assert (failed.capability.status, failed.capability.status_reason) == (Status.FAILED, failed.reason)


async def test_a_model_error_is_retried_then_fails_cleanly(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    first = await in_db(request_build, alice)
    model.add(write(), *[failure(529, "overloaded_error", retry_after="0.01")] * 3, register())
    await pool.idle()
    assert (await built(first)).state == State.DONE

    second = await in_db(lambda: request_build(alice, name="other_dice"))
    model.fallback = failure(529, "overloaded_error", retry_after="0.01")
    await pool.idle()
    failed = await built(second)
    assert (failed.state, failed.error_code) == (State.FAILED, "overloaded")
    assert (
        await in_db(lambda: Capability.objects.for_user(alice).get(name="other_dice").status)
        == Status.FAILED
    )


async def test_who_only_talks_is_reminded_and_may_give_up_in_words(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    model.fallback = reply("This cannot be built without a paid service.")

    await pool.idle()

    failed = await built(build)
    assert (failed.state, failed.error_code) == (State.FAILED, "gave_up")
    assert failed.reason == "This cannot be built without a paid service."
    assert "register_capability" in model.messages[1]["messages"][-1]["content"][0]["text"]
    assert len(model.messages) == 2, "who says the same again means it"


async def test_answers_that_never_end_fail_in_plain_words(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    endless = [reply(f"{number} and on and on", stop_reason="max_tokens") for number in range(3)]
    model.add(*endless)

    await pool.idle()

    failed = await built(build)
    assert (failed.state, failed.error_code) == (State.FAILED, "gave_up")
    assert "cut off at their length limit" in failed.reason
    assert "smaller steps" in model.messages[1]["messages"][-1]["content"][0]["text"]


async def test_calls_that_are_no_calls_get_errors_and_the_build_goes_on(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    odd = [
        reply(tool("write_file", raw='{"path": "main.py", "cont'), stop_reason="max_tokens"),
        reply(tool("write_file", {"path": 5})),
        reply(tool("register_capability", {"examples": "none"})),
        reply(tool("run_command", {})),
        reply(tool("ask_user", {"question": ""}), tool("no_such_tool")),
    ]
    model.add(*odd, write(), register())

    await pool.idle()

    done = await built(build)
    assert done.state == State.DONE, done.reason
    for request in model.messages[2:6]:
        assert last_result(request)["is_error"], request["messages"][-1]


async def test_examples_that_are_wrong_are_refused_with_the_result(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    wrong = register(examples=[{"input": {"count": 2, "sides": 6}, "expect": "eleven dragons"}])
    unfit = register(examples=[{"input": {"count": "two", "sides": 6}}])
    model.add(write(), wrong, unfit, register(examples=[]), register())

    await pool.idle()

    refusals = [last_result(request) for request in model.messages[2:5]]
    assert all(refusal["is_error"] for refusal in refusals)
    assert "eleven dragons" in refusals[0]["content"]
    assert "2d6: " in refusals[0]["content"]
    assert (await built(build)).state == State.DONE


async def test_a_module_that_is_written_anew_is_imported_anew(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(request_build, alice)
    show = code("import main; print(main.run({'count': 2, 'sides': 6}))")
    model.add(
        write(), show, write(DICE.replace("{count}d{sides}", "two dice")), show, write(), register()
    )

    await pool.idle()

    assert "2d6: " in last_result(model.messages[2])["content"]
    assert "two dice: " in last_result(model.messages[4])["content"]
    assert (await built(build)).state == State.DONE


async def test_a_module_is_the_same_however_its_path_is_written(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    await in_db(request_build, alice)
    look = "import main; print(main.run({'count': 1, 'sides': 6}))"
    first = "def run(args):\n    return 'first'\n"
    model.add(
        *(write(first, "./main.py"), code(look), write(path="/home/user/main.py"), code(look)),
        register(),
    )
    await pool.idle()
    assert "first" in last_result(model.messages[2])["content"]
    assert "1d6: " in last_result(model.messages[4])["content"]


@pytest.mark.parametrize("by_command", [True, False])
async def test_a_file_that_was_taken_away_is_not_handed_in(
    alice: User, model: AnthropicServer, pool: BuildPool, by_command: bool
) -> None:
    build = await in_db(request_build, alice)
    written = [write(), write("# nothing is needed\n", "requirements.txt")]
    if by_command:
        model.add(*written, reply(tool("run_command", {"command": "rm requirements.txt"})), register())
    else:
        model.add(*written, register(files={"main.py": DICE, "requirements.txt": ""}))
    await pool.idle()
    made = (await built(build)).capability
    assert await in_db(lambda: files_read(made.path)["requirements.txt"]) == ""


async def test_what_was_asked_for_without_an_input_gets_one_and_a_file_may_come_from_a_command(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    build = await in_db(lambda: request_build(alice, input_schema={"type": "object", "properties": {}}))
    by_command = reply(
        tool(
            "run_command",
            {"command": f"cat > main.py <<'END'\n{DICE}\nEND\npython -m py_compile main.py"},
        )
    )
    model.add(by_command, register(), register(input_schema=SCHEMA))

    await pool.idle()

    assert "Design one from the description" in model.messages[0]["messages"][0]["content"][0]["text"]
    refused = last_result(model.messages[2])
    assert refused["is_error"]
    assert "example 1 gives count, sides" in refused["content"]
    done = await built(build)
    assert (done.state, done.capability.input_schema) == (State.DONE, SCHEMA), done.reason


async def test_a_change_keeps_the_tags_and_the_shape_of_results_that_nobody_wanted_changed(
    alice: User, model: AnthropicServer, pool: BuildPool
) -> None:
    shape = {"type": "object", "properties": {"greeting": {"type": "string"}}}
    main = 'import json\ndef run(args: dict) -> str:\n    return json.dumps({"greeting": "Hello"})\n'
    text = {MAIN: 'def run(args: dict) -> str:\n    return "Hello"\n'}
    made = await in_db(lambda: make(alice, tags=["games", "chance"], output_schema=shape, main=main))
    for given, tags, results in (
        ({}, ["games", "chance"], shape),
        ({"tags": ["luck"]}, ["luck"], shape),
        ({"tags": [], "output_schema": {}}, [], {}),
        ({"output_schema": shape}, [], shape),
        ({"files": text}, [], {}),  # it would be untrue
    ):
        change = await in_db(lambda: build_change(user_id=alice.pk, name=made.name, feedback="Louder."))
        model.add(register(examples=[{"input": {"name": "Ada"}}], **given))
        await pool.idle()
        capability = (await built(change)).capability
        assert (capability.tags, capability.output_schema) == (tags, results)
