"""Requirements of every backend, whatever it is made of. A backend's tests inherit `BackendSuite` and give a fixture `backend`."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.capabilities.sandbox.base import (
    BUILD_LIMITS,
    RUN_LIMITS,
    Backend,
    ErrorCode,
    InstallFailed,
    Limits,
    Progress,
    Purpose,
    RunResult,
    Sandbox,
    SandboxGone,
    SandboxSpec,
)
from apps.capabilities.sandbox.bubblewrap import processes
from apps.core.errors import InvalidInput
from tests.waiting import PATIENCE, until

ALICE = UUID(int=1)


def small(**changed: Any) -> Limits:
    """Limits of a run, some of them changed."""
    names = {name: getattr(RUN_LIMITS, name) for name in Limits.__slots__}
    return Limits(**{**names, **changed})


def spec(**changed: Any) -> SandboxSpec:
    return SandboxSpec(**{"user_id": ALICE, **changed})


@asynccontextmanager
async def opened(
    backend: Backend, wanted: SandboxSpec | None = None, progress: Progress | None = None
) -> AsyncIterator[Sandbox]:
    sandbox = await backend.create(wanted or spec(), progress=progress)
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def run_main(
    backend: Backend, main: str, args: dict[str, Any] | None = None, **changed: Any
) -> RunResult:
    """`main.py` run once in a fresh sandbox."""
    async with opened(backend, spec(**changed)) as sandbox:
        return await sandbox.run_capability({"main.py": main}, args or {})


def code_of(outcome: Any) -> str:
    return outcome.error.code if outcome.error else "ok"


def own_processes(others: Collection[int] = ()) -> set[int]:
    """Of these tests, and of servers that other tests left running; with `others` those that began since, but not those that
    such a server has begun."""
    beneath = processes.ProcessTable().look([os.getpid(), *others])
    return set(beneath[os.getpid()]).difference(others, *(beneath[other] for other in others))


SLEEPS = {
    "main.py": "import time\ndef run(args):\n print('begun', flush=True)\n time.sleep(600)\n return ''"
}


def telling(begun: asyncio.Event) -> Progress:
    """Sets the event when the tool has printed its first line."""

    async def listen(event: dict[str, Any]) -> None:
        if event["status"] == "output":
            begun.set()

    return listen


class BackendSuite:
    async def test_a_tool_gets_its_arguments_and_returns_text(self, backend: Backend) -> None:
        args = {"n": 3, "words": ["ä", "\u2028", "𝄞"], "none": None, "deep": {"x": [1.5, True]}}
        outcome = await run_main(backend, "import json\ndef run(args): return json.dumps(args)", args)
        assert outcome.ok
        assert json.loads(outcome.result or "") == args
        assert outcome.duration_ms >= 0

    async def test_other_files_of_the_tool_can_be_imported_and_read(self, backend: Backend) -> None:
        files = {
            "main.py": "import helper\ndef run(args): return helper.word + open('data/a.txt').read()",
            "helper.py": "word = 'from '",
            "data/a.txt": "a file",
        }
        async with opened(backend) as sandbox:
            outcome = await sandbox.run_capability(files, {})
        assert outcome.result == "from a file"

    async def test_printed_text_is_kept_apart_from_the_result(self, backend: Backend) -> None:
        main = """
import sys
def run(args):
    print('__RESULT__{"result": "forged"}'); print("to stderr", file=sys.stderr)
    print('{"ok": true, "result": "forged"}')
    return "real"
"""
        outcome = await run_main(backend, main)
        assert outcome.result == "real"
        assert "forged" in outcome.stdout
        assert outcome.stderr.strip() == "to stderr"

    async def test_an_exception_comes_back_with_the_end_of_its_traceback(self, backend: Backend) -> None:
        main = "def run(args):\n    return helper(args)\ndef helper(args):\n    return args['missing']\n"
        outcome = await run_main(backend, main)
        assert code_of(outcome) == ErrorCode.RAISED
        assert outcome.result is None
        assert outcome.error is not None
        assert "KeyError: 'missing'" in outcome.error.message
        assert "line 4, in helper" in outcome.error.message
        assert "izzy" not in outcome.error.message

    @pytest.mark.parametrize(
        ("main", "word"),
        [
            ("def run(args: return 1", "SyntaxError"),
            ("x = 1", "run"),
            ("import sys\ndef run(args): sys.exit(3)", "3"),
            ("import os\ndef run(args): os._exit(7)", "7"),
            ("import os, signal\ndef run(args): os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
            ("import missing_module\ndef run(args): return ''", "missing_module"),
        ],
    )
    async def test_a_tool_that_does_not_get_to_its_end_says_why(
        self, backend: Backend, main: str, word: str
    ) -> None:
        outcome = await run_main(backend, main)
        assert code_of(outcome) == ErrorCode.RAISED
        assert outcome.error is not None
        assert word in outcome.error.message

    @pytest.mark.parametrize("value", ["None", "{'a': 1}", "b'bytes'", "float('nan')"])
    async def test_a_result_that_is_no_text_is_refused(self, backend: Backend, value: str) -> None:
        outcome = await run_main(backend, f"def run(args): return {value}")
        assert code_of(outcome) == ErrorCode.BAD_RESULT
        assert outcome.error is not None
        assert "str" in outcome.error.message

    async def test_a_result_of_50_mb_is_refused(self, backend: Backend) -> None:
        outcome = await run_main(backend, "def run(args): return 'x' * 50_000_000")
        assert code_of(outcome) == ErrorCode.BAD_RESULT

    async def test_what_databases_refuse_is_replaced(self, backend: Backend) -> None:
        main = "def run(args):\n print('a\\x00b')\n return 'c\\x00d' + chr(0xd800)"
        outcome = await run_main(backend, main)
        assert outcome.ok
        for text in (outcome.result or "", outcome.stdout):
            text.encode()
            assert "\x00" not in text

    async def test_output_beyond_its_limit_is_cut_and_said_so(self, backend: Backend) -> None:
        outcome = await run_main(
            backend,
            "def run(args):\n print('y' * 50_000)\n return 'ok'",
            limits=small(stdout_bytes=10_000),
        )
        assert outcome.ok
        assert len(outcome.stdout) < 11_000
        assert "not kept" in outcome.stdout or "more" in outcome.stdout

    async def test_lines_are_told_while_the_tool_runs(self, backend: Backend) -> None:
        told: list[dict[str, Any]] = []
        seen = asyncio.Event()

        async def listen(event: dict[str, Any]) -> None:
            told.append(event)
            if event["status"] == "output" and "first" in event["text"]:
                seen.set()

        main = "import time\ndef run(args):\n print('first')\n time.sleep(args['s'])\n print('second')\n return ''"
        async with opened(backend, progress=listen) as sandbox:
            running = asyncio.create_task(sandbox.run_capability({"main.py": main}, {"s": 100}))
            await asyncio.wait_for(seen.wait(), PATIENCE)
            assert not running.done()
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        told.clear()
        async with opened(backend, progress=listen) as sandbox:
            await sandbox.run_capability({"main.py": main}, {"s": 0})
        texts = "\n".join(event["text"] for event in told if event["status"] == "output")
        assert texts.split() == ["first", "second"]
        statuses = [event["status"] for event in told if event["status"] != "output"]
        assert statuses == ["preparing", "running"]

    async def test_secrets_arrive_as_environment_and_no_other_run_sees_them(
        self, backend: Backend
    ) -> None:
        main = "import os\ndef run(args): return os.environ.get('API_KEY', 'none')"
        assert (await run_main(backend, main, env={"API_KEY": "s3cret-value"})).result == "s3cret-value"
        assert (await run_main(backend, main)).result == "none"

    async def test_nothing_of_one_run_is_left_for_the_next(self, backend: Backend) -> None:
        main = (
            "import os\ndef run(args):\n"
            " found = os.path.exists('/tmp/mark') or os.path.exists('mark')\n"
            " open('/tmp/mark', 'w').close(); open('mark', 'w').close()\n"
            " return str(found)"
        )
        assert (await run_main(backend, main)).result == "False"
        assert (await run_main(backend, main)).result == "False"

    async def test_a_run_beyond_its_wall_time_is_ended(self, backend: Backend) -> None:
        outcome = await run_main(
            backend, "import time\ndef run(args): time.sleep(60)", limits=small(wall_seconds=1.0)
        )
        assert code_of(outcome) == ErrorCode.TIMED_OUT

    async def test_cancelling_a_run_ends_it(self, backend: Backend) -> None:
        begun = asyncio.Event()
        async with opened(backend, progress=telling(begun)) as sandbox:
            running = asyncio.create_task(sandbox.run_capability(SLEEPS, {}))
            await asyncio.wait_for(begun.wait(), PATIENCE)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
            with pytest.raises(SandboxGone):
                await sandbox.run_command("true")

    async def test_closing_ends_a_call_under_way_as_cancelled(self, backend: Backend) -> None:
        begun = asyncio.Event()
        sandbox = await backend.create(spec(), progress=telling(begun))
        running = asyncio.create_task(sandbox.run_capability(SLEEPS, {}))
        await asyncio.wait_for(begun.wait(), PATIENCE)
        await sandbox.close()
        outcome = await running
        assert code_of(outcome) == ErrorCode.CANCELLED
        await sandbox.close()

    async def test_code_keeps_its_variables_and_shows_the_last_value(self, backend: Backend) -> None:
        async with opened(backend) as sandbox:
            first = await sandbox.run_code("x = 20\nprint('hello')\ndef f(n): return n + x")
            assert (first.ok, first.value, first.stdout) == (True, "", "hello\n")
            assert (await sandbox.run_code("f(22)")).value == "42"
            long = await sandbox.run_code("'x' * 100_000")
            assert 20_000 <= len(long.value) < 21_000
            assert long.value.endswith("… (100,002 characters)")

    async def test_code_that_raises_leaves_the_kernel_as_it_was(self, backend: Backend) -> None:
        async with opened(backend) as sandbox:
            await sandbox.run_code("x = 1")
            failed = await sandbox.run_code("y = 2\nx / 0")
            assert not failed.ok
            assert code_of(failed) == ErrorCode.RAISED
            assert failed.error is not None
            assert "ZeroDivisionError" in failed.error.message
            assert (await sandbox.run_code("x + y")).value == "3"
            assert not (await sandbox.run_code("def broken(:")).ok

    async def test_code_that_takes_too_long_is_interrupted_and_the_kernel_lives_on(
        self, backend: Backend
    ) -> None:
        async with opened(backend) as sandbox:
            await sandbox.run_code("x = 7")
            late = await sandbox.run_code("while True: pass", seconds=0.5)
            assert code_of(late) == ErrorCode.TIMED_OUT
            assert (await sandbox.run_code("x")).value == "7"

    async def test_commands_give_their_exit_code_and_output(self, backend: Backend) -> None:
        async with opened(backend) as sandbox:
            done = await sandbox.run_command("echo out; echo err >&2; exit 3")
        assert (done.exit_code, done.stdout, done.stderr) == (3, "out\n", "err\n")
        assert not done.ok

    async def test_a_command_that_takes_too_long_is_killed_with_all_it_started(
        self, backend: Backend
    ) -> None:
        async with opened(backend) as sandbox:
            late = await sandbox.run_command("sleep 4321 & sleep 4321", seconds=0.5)
            assert code_of(late) == ErrorCode.TIMED_OUT

            async def is_gone() -> bool:
                left = await sandbox.run_command(
                    "for d in /proc/[0-9]*; do tr '\\0' ' ' < $d/cmdline; echo; done 2>/dev/null"
                )
                return "sleep 4321" not in left.stdout

            await until(is_gone)  # the kernel takes a moment to end what was killed

    async def test_written_files_are_seen_by_code_commands_and_tools(self, backend: Backend) -> None:
        async with opened(backend) as sandbox:
            await sandbox.write_file("notes/a.txt", "text ä")
            await sandbox.write_file("/tmp/b.bin", b"\x00\xff")
            assert (await sandbox.run_command("cat notes/a.txt")).stdout == "text ä"
            assert (await sandbox.run_code("open('/tmp/b.bin', 'rb').read()")).value == r"b'\x00\xff'"
            main = "def run(args): return open('notes/a.txt', encoding='utf-8').read()"
            assert (await sandbox.run_capability({"main.py": main}, {})).result == "text ä"

    @pytest.mark.parametrize(
        "path", ["", "/etc/passwd", "../../etc/x", "a/../../b", "/home/user", "x\x00y"]
    )
    async def test_files_outside_the_home_are_refused(self, backend: Backend, path: str) -> None:
        async with opened(backend) as sandbox:
            with pytest.raises(InvalidInput):
                await sandbox.write_file(path, "x")

    async def test_a_tool_can_be_tried_again_with_other_files(self, backend: Backend) -> None:
        async with opened(backend, spec(purpose=Purpose.BUILD, limits=BUILD_LIMITS)) as sandbox:
            first = await sandbox.run_capability({"main.py": "def run(args): return 'one'"}, {})
            second = await sandbox.run_capability({"main.py": "def run(args): return 'two'"}, {})
            assert (first.result, second.result) == ("one", "two")

    @pytest.mark.parametrize(
        "line", ["-e .", "--index-url https://x.test", "git+https://x.test/a", "a @ file:///b"]
    )
    async def test_requirements_that_name_a_place_are_refused(self, backend: Backend, line: str) -> None:
        with pytest.raises((InvalidInput, InstallFailed)):
            await backend.create(spec(requirements=line))

    async def test_two_users_run_at_the_same_time(self, backend: Backend) -> None:
        main = "import time\ndef run(args):\n time.sleep(0.2)\n return args['who']"

        async def one(who: str) -> RunResult:
            return await run_main(backend, main, {"who": who}, user_id=uuid4())

        outcomes = await asyncio.gather(*(one(str(number)) for number in range(4)))
        assert [outcome.result for outcome in outcomes] == ["0", "1", "2", "3"]
