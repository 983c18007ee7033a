"""Running capabilities in real sandboxes."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import User
from apps.agent.tools.results import Scrubber
from apps.capabilities.catalog.secrets import user_secret_set
from apps.capabilities.catalog.selectors import capability_get, retire_reason
from apps.capabilities.models import Capability, Execution, Trigger
from apps.capabilities.runs.execution import RunOrigin, capability_execute, executions_prune
from apps.core.db.pool import in_db
from tests.capabilities.making import make
from tests.waiting import PATIENCE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("real_sandbox")]

ANY: dict[str, Any] = {"type": "object"}
SECRET = "s3cret-value-of-alice-0123456789"


async def run(user: User, args: dict[str, Any] | None = None, **options: Any) -> Execution:
    return await capability_execute(user_id=user.pk, name="greeter", args=args or {}, **options)


async def made(user: User, main: str, **parts: Any) -> Capability:
    parts = {"input_schema": ANY, **parts}
    return await in_db(lambda: make(user, main=main, approved_by=user.pk, **parts))


async def test_a_run_gives_its_result_and_leaves_a_row(alice: User) -> None:
    await made(
        alice, 'def run(args):\n    print("hello log")\n    return "sum: " + str(sum(args["numbers"]))\n'
    )
    execution = await run(alice, {"numbers": [1, 2, 3]})
    assert (execution.state, execution.result) == ("ok", "sum: 6")
    row = await in_db(lambda: Execution.objects.for_user(alice).get())
    assert (row.result, row.stdout, row.input) == ("sum: 6", "hello log\n", {"numbers": [1, 2, 3]})
    assert row.backend
    assert row.finished_at is not None
    counted = await in_db(capability_get, alice.pk, "greeter")
    assert (counted.runs, counted.successes, counted.failures_in_row) == (1, 1, 0)
    assert counted.last_run_at == row.finished_at


async def test_every_run_is_fresh(alice: User) -> None:
    main = (
        "from pathlib import Path\n"
        'MARK = Path("mark")\n'
        "def run(args):\n"
        "    seen = MARK.exists()\n"
        '    MARK.write_text("x")\n'
        "    return str(seen)\n"
    )
    await made(alice, main)
    assert [(await run(alice)).result for _ in range(3)] == ["False", "False", "False"]


@pytest.mark.parametrize(
    ("main", "code", "said"),
    [
        ('def run(args):\n    raise ValueError("no such city")\n', "raised", "ValueError: no such city"),
        ("def run(args):\n    return {1: 2}[3]\n", "raised", "KeyError"),
        ("import nonsense_module\ndef run(args):\n    return ''\n", "raised", "nonsense_module"),
        ("import sys\ndef run(args):\n    sys.exit(3)\n", "raised", ""),
        ("def run(args):\n    return 'x' * 600_000_000\n", "out_of_memory", ""),
    ],
)
async def test_what_a_tool_does_wrong_is_in_the_row(
    alice: User, main: str, code: str, said: str
) -> None:
    await made(alice, main)
    execution = await run(alice)
    assert (execution.state, execution.error_code) == ("failed", code), execution.error_message
    assert said in execution.error_message
    counted = await in_db(capability_get, alice.pk, "greeter")
    assert (counted.runs, counted.successes, counted.failures_in_row) == (1, 0, 1)


async def test_three_failures_in_a_row_suggest_to_retire_it(alice: User) -> None:
    await made(alice, "def run(args):\n    return 1 / args['by']\n")
    for _ in range(3):
        await run(alice, {"by": 0})
    assert "3 runs failed" in await in_db(lambda: retire_reason(capability_get(alice.pk, "greeter")))


async def test_requirements_that_cannot_be_installed_are_told(alice: User) -> None:
    await made(alice, "def run(args):\n    return ''\n", requirements="idna==0.0.0.1\n")
    execution = await run(alice)
    assert execution.error_code == "install_failed"
    assert execution.error_message


async def test_secrets_are_given_and_appear_nowhere(alice: User) -> None:
    await in_db(lambda: user_secret_set(user_id=alice.pk, name="GREET_KEY", value=SECRET))
    main = (
        "import base64, os, sys\n"
        "def run(args):\n"
        '    key = os.environ["GREET_KEY"]\n'
        "    print(key)\n"
        "    print(base64.b64encode(key.encode()).decode(), file=sys.stderr)\n"
        '    if args.get("fail"):\n'
        "        raise ValueError(key)\n"
        '    return f"{len(key)} {key}"\n'
    )
    await made(alice, main, secrets=["GREET_KEY"])
    worked = await run(alice)
    assert worked.result == f"{len(SECRET)} [secret removed]"
    failed = await run(alice, {"fail": SECRET})
    assert failed.error_code == "raised"
    rows = await in_db(lambda: str(list(Execution.objects.for_user(alice).values())))
    assert SECRET not in rows
    assert "c2VjcmV0LXZhbHVl" not in rows
    assert "[secret removed]" in rows


@pytest.mark.parametrize("missing", range(4))
async def test_half_a_secret_is_not_left_where_a_text_is_cut(alice: User, missing: int) -> None:
    """A run's output is cut before Izzy can take secrets out of it."""
    await in_db(lambda: user_secret_set(user_id=alice.pk, name="GREET_KEY", value=SECRET))
    rest = 4000 - len(SECRET) + 1 + missing * 5
    main = (
        "import os\n"
        "def run(args):\n"
        f"    text = 'y' * 500 + ' ' + os.environ['GREET_KEY'] + ' ' + 'z ' * {rest // 2} + 'end'\n"
        "    print(text)\n"
        "    raise ValueError(text)\n"
    )
    await made(alice, main, secrets=["GREET_KEY"])
    told: list[str] = []

    async def listen(event: dict[str, Any]) -> None:
        told.append(Scrubber([SECRET]).text(event.get("text", "")))

    execution = await run(alice, progress=listen)
    for text in (execution.error_message, "".join(told)):
        assert text.rstrip().endswith("z end")
        assert SECRET[-8:] not in text


async def test_without_permission_there_is_neither_secret_nor_network(alice: User) -> None:
    await in_db(lambda: user_secret_set(user_id=alice.pk, name="GREET_KEY", value=SECRET))
    main = (
        "import os, socket\n"
        "def run(args):\n"
        "    try:\n"
        '        socket.create_connection(("127.0.0.1", 80), 2)\n'
        '        reached = "yes"\n'
        "    except OSError:\n"
        '        reached = "no"\n'
        '    return reached + " " + os.environ.get("GREET_KEY", "none")\n'
    )
    await made(alice, main)
    assert (await run(alice)).result == "no none"


async def test_progress_is_told_step_by_step(alice: User) -> None:
    await made(alice, 'def run(args):\n    print("half way", flush=True)\n    return "done"\n')
    told: list[dict[str, Any]] = []

    async def progress(data: dict[str, Any]) -> None:
        told.append(data)

    await run(alice, progress=progress)
    steps = [data["status"] for data in told]
    assert steps[:1] in (["preparing"], ["queued"])
    assert "running" in steps
    assert "half way" in "".join(data.get("text", "") for data in told if data["status"] == "output")


async def test_a_cancelled_run_ends_at_once_and_says_so(alice: User) -> None:
    await made(
        alice,
        'import time\ndef run(args):\n    print("begun", flush=True)\n    time.sleep(1000)\n    return ""\n',
    )
    begun = asyncio.Event()

    async def progress(data: dict[str, Any]) -> None:
        if data["status"] == "output":
            begun.set()

    task = asyncio.create_task(run(alice, progress=progress))
    await asyncio.wait_for(begun.wait(), PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    row = await in_db(lambda: Execution.objects.for_user(alice).get())
    assert (row.state, row.error_code) == ("failed", "cancelled")
    counted = await in_db(capability_get, alice.pk, "greeter")
    assert (counted.runs, counted.failures_in_row) == (0, 0)


async def test_one_bad_run_affects_no_other(alice: User) -> None:
    await made(alice, "def run(args):\n    return str(1 / args['by'])\n")
    runs = await asyncio.gather(*(run(alice, {"by": by}) for by in (0, 1, 2, 0, 4)))
    assert [each.result or each.error_code for each in runs] == [
        "raised",
        "1.0",
        "0.5",
        "raised",
        "0.25",
    ]


async def test_old_runs_go(alice: User, settings: Any) -> None:
    capability = await made(alice, "def run(args):\n    return ''\n")

    def kept() -> list[datetime]:
        times = [capability.created_at, capability.created_at - timedelta(days=31)]
        for time in times:
            Execution.objects.create(
                user=alice,
                capability=capability,
                version=1,
                trigger=Trigger.API,
                state="ok",
                created_at=time,
            )
        settings.IZZY_EXECUTION_DAYS = 32
        executions_prune()
        assert Execution.objects.for_user(alice).count() == 2
        settings.IZZY_EXECUTION_DAYS = 30
        executions_prune()
        return list(Execution.objects.for_user(alice).values_list("created_at", flat=True))

    assert await in_db(kept) == [capability.created_at]


def test_over_rest_every_run_that_began_is_200(alice: User, api: Callable[..., Client]) -> None:
    make(
        alice,
        input_schema=ANY,
        main='def run(args):\n    print("log")\n    return str(10 // args["by"])\n',
    )
    client = api(alice)

    def call(args: dict[str, Any]) -> Any:
        return client.post(
            "/api/v1/capabilities/greeter/run/", {"input": args}, content_type="application/json"
        )

    good = call({"by": 3})
    assert good.status_code == 200
    body = good.json()
    assert set(body) == {"ok", "result", "error", "stdout", "duration_ms", "execution_id"}
    assert (body["ok"], body["result"], body["error"], body["stdout"]) == (True, "3", None, "log\n")
    bad = call({"by": 0}).json()
    assert (bad["ok"], bad["result"], bad["error"]["code"]) == (False, None, "raised")
    assert "ZeroDivisionError" in bad["error"]["message"]
    listed = client.get("/api/v1/capabilities/greeter/executions/").json()
    assert [row["ok"] for row in listed["results"]] == [False, True]
    assert listed["results"][1]["id"] == body["execution_id"]


def test_on_the_page_a_run_shows_its_result_and_its_logs(
    alice: User, sign_in: Callable[[User], Client]
) -> None:
    make(alice)
    browser = sign_in(alice)
    answer = browser.post(
        "/capabilities/greeter/run/", {"field-0": "<b>Ada</b>"}, headers={"HX-Request": "true"}
    )
    assert "Hello, &lt;b&gt;Ada&lt;/b&gt;!" in answer.content.decode()
    row = Execution.objects.for_user(alice).get()
    page = browser.get(f"/capabilities/greeter/runs/{row.pk}/").content.decode()
    assert "Hello, &lt;b&gt;Ada&lt;/b&gt;!" in page
    assert str(row.pk) in browser.get("/capabilities/greeter/runs/").content.decode()


async def test_a_place_is_noted(alice: User) -> None:
    await made(alice, "def run(args):\n    return ''\n")
    await run(alice, origin=RunOrigin(trigger=Trigger.PAGE))
    assert (await in_db(lambda: Execution.objects.for_user(alice).get())).trigger == "page"
