"""Sandboxes at E2B: the real SDK against a loopback server that speaks its protocol and really runs the code."""

import asyncio
import io
import zipfile
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from apps.capabilities.sandbox.base import (
    BUILD_LIMITS,
    RUN_LIMITS,
    Backend,
    ErrorCode,
    InstallFailed,
    Limits,
    Output,
    Purpose,
    RunError,
    Sandbox,
    SandboxGone,
    SandboxSpec,
    SandboxUnavailable,
)
from apps.capabilities.sandbox.e2b.answers import MarkedOutput, answer_error
from apps.capabilities.sandbox.e2b.backend import E2BBackend, kill_orphans
from apps.capabilities.sandbox.requirements import PUBLIC_FILES, PUBLIC_INDEX
from apps.capabilities.sandbox.running import run_capability
from apps.core.errors import InvalidInput, IzzyError
from apps.core.ids import uuid7
from tests.peers.e2b_server import E2BServer
from tests.peers.web_pages import WebPages
from tests.waiting import until

from .backend_suite import BackendSuite, small

Make = Callable[..., Awaitable[Sandbox]]

HELLO = "def run(args):\n    return 'Hello ' + args['name']\n"


@pytest.fixture
async def e2b(settings: Any, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[E2BServer]:
    async with E2BServer() as server:
        settings.E2B_API_KEY = server.api_key
        monkeypatch.setenv("E2B_API_URL", server.url)
        monkeypatch.setenv("E2B_SANDBOX_URL", server.url)
        yield server


@pytest.fixture
async def make(e2b: E2BServer) -> AsyncIterator[Make]:
    """Makes sandboxes, and closes them after the test."""
    made: list[Sandbox] = []

    async def make_sandbox(progress: Any = None, **options: Any) -> Sandbox:
        spec = SandboxSpec(user_id=uuid7(), **options)
        made.append(await E2BBackend().create(spec, progress=progress))
        return made[-1]

    yield make_sandbox
    for sandbox in made:
        await sandbox.close()


class TestE2B(BackendSuite):
    """It does what every backend does."""

    @pytest.fixture
    def backend(self, e2b: E2BServer) -> Backend:
        return E2BBackend()


def running_in(e2b: E2BServer) -> bool:
    """Whether something runs in a sandbox."""
    return any(machine.processes for machine in e2b.sandboxes.values())


def short(**changes: Any) -> Limits:
    values = {name: getattr(RUN_LIMITS, name) for name in RUN_LIMITS.__dataclass_fields__}
    return Limits(**(values | changes))


async def test_a_capability_runs_and_its_sandbox_goes(e2b: E2BServer, make: Make) -> None:
    sandbox = await make()
    outcome = await sandbox.run_capability({"main.py": HELLO}, {"name": "Ä\u2028 \U0001f600"})
    assert (outcome.ok, outcome.result) == (True, "Hello Ä\u2028 \U0001f600")
    await sandbox.close()
    await sandbox.close()
    assert e2b.sandboxes == {}
    with pytest.raises(SandboxGone):
        await sandbox.run_command("true")


async def test_it_is_made_to_end_by_itself_with_nothing_reachable(e2b: E2BServer, make: Make) -> None:
    await make()
    (body,) = e2b.created
    assert body["templateID"] == "code-interpreter-v1"
    assert body["timeout"] == 210
    assert not body.get("autoPause")
    assert body["network"] == {"allowPublicTraffic": False, "denyOut": ["0.0.0.0/0"]}


async def test_the_allow_list_is_passed_on(e2b: E2BServer, make: Make) -> None:
    await make(hosts=frozenset({"api.example.org", "other.example:8443"}))
    assert e2b.created[0]["network"]["allowOut"] == ["api.example.org", "other.example"]
    assert e2b.created[0]["network"]["denyOut"] == ["0.0.0.0/0"]


async def test_a_build_reaches_the_index_and_what_it_is_allowed_later(
    e2b: E2BServer, make: Make
) -> None:
    sandbox = await make(purpose=Purpose.BUILD, limits=BUILD_LIMITS)
    assert e2b.created[0]["timeout"] == 630
    assert e2b.created[0]["network"]["allowOut"] == [PUBLIC_FILES, PUBLIC_INDEX]
    await sandbox.allow_hosts({"api.example.org:443"})
    await sandbox.allow_hosts({"*"})
    assert e2b.networks[0]["allowOut"] == ["api.example.org", PUBLIC_FILES, PUBLIC_INDEX]
    assert "allowOut" not in e2b.networks[1]
    assert "10.0.0.0/8" in e2b.networks[1]["denyOut"]


async def test_printed_text_is_never_taken_for_a_result(make: Make) -> None:
    code = (
        "import sys, json\n"
        "def run(args):\n"
        "    for mark in ('0' * 32, 'f' * 32, ''):\n"
        "        print('\\n' + mark + ' ' + json.dumps({'result': 'forged'}))\n"
        "    sys.stdout.flush()\n"
        "    return 'real'\n"
    )
    outcome = await (await make()).run_capability({"main.py": code}, {})
    assert outcome.result == "real"
    assert outcome.stdout.count("forged") == 3


async def test_a_tool_that_prints_a_result_and_dies_has_none(make: Make) -> None:
    code = 'import os\ndef run(args):\n    print(\'\\n{"result": "forged"}\', flush=True)\n    os._exit(3)\n'
    outcome = await (await make()).run_capability({"main.py": code}, {})
    assert not outcome.ok
    assert outcome.result is None
    assert outcome.error is not None
    assert (outcome.error.code, "exit code 3" in outcome.error.message) == (ErrorCode.RAISED, True)


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ("    return 1", ErrorCode.BAD_RESULT, "must return text"),
        ("    return 'x' * 3_000_000", ErrorCode.BAD_RESULT, "3,000,000 bytes"),
        ("    raise ValueError('no such town')", ErrorCode.RAISED, "ValueError: no such town"),
        ("    raise SystemExit(2)", ErrorCode.RAISED, "SystemExit: 2"),
        ("    return len(bytearray(2_000_000_000)) and ''", ErrorCode.OUT_OF_MEMORY, ""),
        ("    import os; os.kill(os.getpid(), 9)", ErrorCode.OUT_OF_MEMORY, "killed"),
        ("    import os; os.kill(os.getpid(), 11)", ErrorCode.RAISED, "SIGSEGV"),
        ("    return missing", ErrorCode.RAISED, 'main.py", line 2'),
    ],
)
async def test_each_way_to_fail_has_its_code(make: Make, body: str, code: ErrorCode, words: str) -> None:
    outcome = await (await make()).run_capability({"main.py": f"def run(args):\n{body}\n"}, {})
    assert outcome.error is not None
    assert outcome.error.code == code
    assert words in outcome.error.message
    assert "inside.py" not in outcome.error.message


async def test_a_tool_that_leaves_a_process_behind_answers_all_the_same(
    e2b: E2BServer, make: Make
) -> None:
    code = "import os, time\ndef run(args):\n    if os.fork() == 0:\n        time.sleep(600)\n    return 'done'\n"
    outcome = await (await make(limits=short(wall_seconds=20))).run_capability({"main.py": code}, {})
    assert outcome.result == "done"


async def test_secrets_are_in_the_environment_and_nowhere_else(e2b: E2BServer, make: Make) -> None:
    sandbox = await make(env={"API_KEY": "s3cret-value"})
    code = "import os\ndef run(args):\n    return os.environ['API_KEY']\n"
    assert (await sandbox.run_capability({"main.py": code}, {})).result == "s3cret-value"
    assert "s3cret" not in str(e2b.created)
    assert (await sandbox.run_command('echo "$API_KEY"')).stdout == "s3cret-value\n"
    assert (await sandbox.run_code("import os; os.environ['API_KEY']")).value == "'s3cret-value'"


async def test_what_it_prints_is_told_as_it_comes(make: Make) -> None:
    told: list[dict[str, Any]] = []

    async def progress(data: dict[str, Any]) -> None:
        told.append(data)

    code = "import sys\ndef run(args):\n    print('one'); print('two', file=sys.stderr); return ''\n"
    outcome = await (await make(progress)).run_capability({"main.py": code}, {})
    assert (outcome.stdout.strip(), outcome.stderr.strip()) == ("one", "two")
    assert [data["status"] for data in told[:2]] == ["preparing", "running"]
    assert {(data["stream"], data["text"].strip()) for data in told[2:]} == {
        ("stdout", "one"),
        ("stderr", "two"),
    }


async def test_the_kernel_keeps_its_variables(make: Make) -> None:
    sandbox = await make()
    first = await sandbox.run_code("x = 20\nprint('set')")
    assert (first.ok, first.stdout, first.value) == (True, "set\n", "")
    assert (await sandbox.run_code("x + 1")).value == "21"
    failed = await sandbox.run_code("1 / 0")
    assert failed.error is not None
    assert "ZeroDivisionError" in failed.error.message
    assert (await sandbox.run_code("x")).value == "20"


async def test_code_that_takes_too_long_is_interrupted_and_the_kernel_lives_on(make: Make) -> None:
    sandbox = await make()
    await sandbox.run_code("x = 5")
    slow = await sandbox.run_code("import time\nwhile True: time.sleep(0.01)", seconds=0.5)
    assert slow.error is not None
    assert slow.error.code == ErrorCode.TIMED_OUT
    assert (await sandbox.run_code("x")).value == "5"


async def test_commands_have_exit_codes_and_end_with_all_they_started(make: Make) -> None:
    sandbox = await make()
    done = await sandbox.run_command("echo out; echo err >&2; exit 7")
    assert (done.exit_code, done.stdout, done.stderr, done.ok) == (7, "out\n", "err\n", False)
    assert (await sandbox.run_command("kill -TERM $$")).exit_code == -15
    slow = await sandbox.run_command("sleep 600 & sleep 600; echo late", seconds=0.5)
    assert slow.error is not None
    assert (slow.error.code, slow.exit_code) == (ErrorCode.TIMED_OUT, -9)
    assert (await sandbox.run_command("echo still here")).stdout == "still here\n"


async def test_files_are_written_where_they_belong_and_nowhere_else(make: Make) -> None:
    sandbox = await make()
    await sandbox.write_file("data/a.txt", "Grüße")
    await sandbox.write_file("/tmp/b.bin", b"\x00\xff")
    assert (await sandbox.run_command("cat data/a.txt; wc -c < /tmp/b.bin")).stdout == "Grüße2\n"
    for path in ("../other", "/home/user/../x", "/etc/passwd", "a\x00b", "/tmp", "."):
        with pytest.raises(InvalidInput):
            await sandbox.write_file(path, "x")
    with pytest.raises(InvalidInput):
        await sandbox.write_file("big", b"x" * (RUN_LIMITS.file_bytes + 1))


async def test_the_wall_time_counts_for_the_whole_life(e2b: E2BServer, make: Make) -> None:
    sandbox = await make(limits=short(wall_seconds=1))
    code = "import time\ndef run(args):\n    time.sleep(600)\n"
    outcome = await sandbox.run_capability({"main.py": code}, {})
    assert outcome.error is not None
    assert outcome.error.code == ErrorCode.TIMED_OUT
    assert e2b.sandboxes == {}
    with pytest.raises(SandboxGone):
        await sandbox.run_command("true")


async def test_processor_time_is_limited(make: Make) -> None:
    sandbox = await make(limits=short(cpu_seconds=1))
    outcome = await sandbox.run_capability({"main.py": "def run(args):\n    while True: pass\n"}, {})
    assert outcome.error is not None
    assert outcome.error.code in {ErrorCode.TIMED_OUT, ErrorCode.OUT_OF_MEMORY}


async def test_a_flood_of_output_ends_it(e2b: E2BServer, make: Make) -> None:
    sandbox = await make(limits=short(flood_bytes=200_000, stdout_bytes=1_000))
    code = "def run(args):\n    while True: print('x' * 1000)\n"
    outcome = await sandbox.run_capability({"main.py": code}, {})
    assert outcome.error is not None
    assert outcome.error.code == ErrorCode.TOO_MUCH_OUTPUT
    assert outcome.stdout.startswith("x" * 999)
    assert "more bytes were not kept" in outcome.stdout
    assert e2b.sandboxes == {}


async def test_cancelling_ends_the_sandbox_at_once(e2b: E2BServer, make: Make) -> None:
    sandbox = await make()
    running = asyncio.ensure_future(sandbox.run_command("sleep 600"))
    await until(lambda: running_in(e2b))
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert e2b.sandboxes == {}


async def test_a_sandbox_that_nobody_waits_for_any_more_is_ended_when_it_is_there(
    e2b: E2BServer,
) -> None:
    e2b.hold = asyncio.Event()
    making = asyncio.ensure_future(E2BBackend().create(SandboxSpec(user_id=uuid7())))
    await until(lambda: e2b.created)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    e2b.hold.set()
    await until(lambda: e2b.ended)
    assert e2b.sandboxes == {}


async def test_closing_from_elsewhere_ends_a_run(e2b: E2BServer, make: Make) -> None:
    sandbox = await make()
    running = asyncio.ensure_future(sandbox.run_command("sleep 600"))
    await until(lambda: running_in(e2b))
    await sandbox.close()
    done = await running
    assert done.error is not None
    assert done.error.code == ErrorCode.CANCELLED


async def test_a_sandbox_that_dies_is_a_failure_of_the_sandbox(e2b: E2BServer, make: Make) -> None:
    sandbox = await make()
    running = asyncio.ensure_future(sandbox.run_command("sleep 600"))
    await until(lambda: running_in(e2b))
    e2b.kill(next(iter(e2b.sandboxes)))
    done = await running
    assert done.error is not None
    assert done.error.code == ErrorCode.SANDBOX_FAILED


@pytest.mark.parametrize(
    ("status", "words"), [(429, "no room"), (500, "could not make"), (401, "E2B_API_KEY")]
)
async def test_where_there_is_no_sandbox_it_says_why(e2b: E2BServer, status: int, words: str) -> None:
    e2b.refuse = status
    with pytest.raises(SandboxUnavailable, match=words):
        await E2BBackend().create(SandboxSpec(user_id=uuid7()))


async def test_a_service_that_is_down_is_told(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.E2B_API_KEY = "e2b_0123456789abcdef"
    monkeypatch.setenv("E2B_API_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("E2B_CONNECTION_RETRIES", "0")
    with pytest.raises(SandboxUnavailable):
        await E2BBackend().create(SandboxSpec(user_id=uuid7()))


async def test_what_a_dead_process_left_is_ended_and_nothing_else(
    e2b: E2BServer, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make()
    with monkeypatch.context() as patch:
        patch.setattr("apps.capabilities.sandbox.e2b.backend.os.getpid", lambda: 2**22 + 1)
        await make()
    with monkeypatch.context() as patch:
        patch.setattr("apps.capabilities.sandbox.e2b.backend._instance", lambda: "another")
        patch.setattr("apps.capabilities.sandbox.e2b.backend.os.getpid", lambda: 2**22 + 1)
        await make()
    mine, _, other = list(e2b.sandboxes)
    assert await kill_orphans() == 1
    assert list(e2b.sandboxes) == [mine, other]


@pytest.fixture
async def index(e2b: E2BServer) -> AsyncIterator[WebPages]:
    """A package index with one package, `greeting` 1.0."""
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w") as file:
        file.writestr("greeting.py", "def hello(name):\n    return 'Hello ' + name\n")
        file.writestr(
            "greeting-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n"
        )
        file.writestr(
            "greeting-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        file.writestr("greeting-1.0.dist-info/RECORD", "")
    async with WebPages("127.0.0.1") as web:
        name = "greeting-1.0-py3-none-any.whl"
        web.page("/simple/greeting/", f'<a href="/{name}">{name}</a>')
        web.page(f"/{name}", wheel.getvalue(), "application/octet-stream")
        e2b.index_url = web.url("/simple/")
        yield web


async def test_requirements_are_installed_before_the_hosts_are_allowed(
    e2b: E2BServer, index: WebPages, make: Make
) -> None:
    told: list[str] = []

    async def progress(data: dict[str, Any]) -> None:
        told.append(data["status"])

    sandbox = await make(progress, requirements="greeting==1.0\n", hosts=frozenset({"api.example.org"}))
    assert [status for status in told if status != "output"] == ["preparing", "installing", "running"]
    assert e2b.created[0]["timeout"] == 510
    assert e2b.created[0]["network"]["allowOut"] == [PUBLIC_FILES, PUBLIC_INDEX]
    assert e2b.networks == [{"allowOut": ["api.example.org"], "denyOut": ["0.0.0.0/0"]}]
    assert e2b.timeouts == [210]
    code = "import greeting\ndef run(args):\n    return greeting.hello('Ada')\n"
    assert (await sandbox.run_capability({"main.py": code}, {})).result == "Hello Ada"


async def test_requirements_that_cannot_be_had_are_quoted_and_leave_nothing(
    e2b: E2BServer, index: WebPages, make: Make
) -> None:
    with pytest.raises(InstallFailed, match=r"(?s)could not be installed.*no-such-package"):
        await make(requirements="no-such-package")
    assert e2b.sandboxes == {}


async def test_a_sandbox_that_dies_while_packages_are_installed_is_a_failure_of_the_sandbox(
    e2b: E2BServer, index: WebPages, settings: Any
) -> None:
    settings.IZZY_SANDBOX = "e2b"

    async def progress(data: dict[str, Any]) -> None:
        if data["status"] == "installing":
            e2b.kill(next(iter(e2b.sandboxes)))

    spec = SandboxSpec(user_id=uuid7(), requirements="greeting==1.0\n")
    done = await run_capability(spec, {"main.py": HELLO}, {"name": "Ada"}, progress)
    assert done.error is not None
    assert done.error.code == ErrorCode.SANDBOX_FAILED


async def test_a_line_that_is_no_requirement_is_refused_before_a_sandbox_is_made(
    e2b: E2BServer, make: Make
) -> None:
    for line in ("--index-url http://evil.test", "https://evil.test/x.whl", "-e ."):
        with pytest.raises(IzzyError):
            await make(requirements=line)
    assert e2b.created == []


def test_the_probe_says_what_is_missing(settings: Any) -> None:
    settings.E2B_API_KEY = ""
    assert "E2B_API_KEY" in E2BBackend().probe().hint
    settings.E2B_API_KEY = "e2b_x"
    assert E2BBackend().probe().ok


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (None, "sandbox_failed"),
        ({"result": "fine"}, ""),
        ({"result": 5}, "bad_result"),
        ({}, "bad_result"),
        ({"code": "raised", "message": "its words"}, "raised"),
        ({"code": "cancelled", "message": "by whom?"}, "bad_result"),
        ({"code": ["raised"], "message": "x"}, "bad_result"),
        ({"code": "raised", "message": {"x": 1}}, "bad_result"),
    ],
)
def test_an_answer_that_a_tool_forged_is_believed_no_further_than_a_tool(answer: Any, code: str) -> None:
    found = answer_error(answer)
    assert (found.code if found else "") == code


def test_a_forged_message_is_kept_short() -> None:
    found = answer_error({"code": "raised", "message": "word " * 100_000})
    assert found is not None
    assert len(found.message) < 4100


@pytest.mark.parametrize("behind", ["x" * 300_000, "[" * 30_000, "{", "5"])
def test_what_stands_behind_a_mark_is_bounded(behind: str) -> None:
    floods: list[RunError] = []
    output = Output(small(), None, floods.append)
    marked = MarkedOutput(output, "MARK", 10_000)
    marked.feed("printedMA")
    marked.feed("RK ")
    for _ in range(3):
        marked.feed(behind)
    assert marked.finish() is None
    assert output.report()["stdout"] == "printed"
    assert len(floods) == (1 if len(behind) > 200_000 else 0)
