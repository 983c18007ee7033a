"""A tool's call in a fresh sandbox beside a bare start of the same Python, and a hundred calls at once."""

import asyncio
import gc
import os
import statistics
import subprocess
import time
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from apps.capabilities.sandbox.base import BUILD_LIMITS, Purpose, SandboxSpec
from apps.capabilities.sandbox.bubblewrap import processes
from apps.capabilities.sandbox.bubblewrap.prepared import prepare
from apps.capabilities.sandbox.bubblewrap.processes import stand_back, watchdog
from apps.capabilities.sandbox.layers.store import user_forget
from apps.capabilities.sandbox.running import open_sandbox, places, run_capability
from benchmarks.report import Report, Timing

MOST_ALONE, MOST_WITH_REQUESTS = 4.0, 10.0
MOST_MEMORY_KEPT = 20_000_000
HELLO = {"main.py": "def run(args):\n    return 'hello'\n"}
USES_REQUESTS = {"main.py": "import requests\ndef run(args):\n    return requests.__version__\n"}
USES_JSON = {"main.py": "import json\ndef run(args):\n    return json.dumps(args)\n"}
WORKS = {"main.py": "def run(args):\n    return str(sum(range(2_000_000)))\n"}
USERS = 10


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=40, help="calls of each kind, taken by turns")
    parser.add_argument("--calls", type=int, default=100, help="calls at once")


def run(options: dict[str, Any]) -> Report:
    cores = os.cpu_count()
    chosen = {name: options[name] for name in ("rounds", "calls")}
    report = Report("sandbox", settings={**chosen, "cores": cores, "places": places()})
    user = uuid4()
    try:
        asyncio.run(_measure(report, user, options))
    finally:
        user_forget(user)
    return report


async def _measure(report: Report, user: UUID, options: dict[str, Any]) -> None:
    report.settings["python"] = str(prepare().interpreter.path)
    await _installations(report, user)
    await _single_calls(report, user, options["rounds"])
    await _in_a_build(report, user, options["rounds"])
    await _at_once(report, options["calls"])


async def _installations(report: Report, user: UUID) -> None:
    section = report.section(
        "requirements, installed once (milliseconds)", ["what", "first call", "second call"]
    )
    for wanted, files in (
        ("requests", USES_REQUESTS),
        ("numpy", {"main.py": "import numpy\n" + HELLO["main.py"]}),
    ):
        spec = SandboxSpec(user_id=user, requirements=wanted)
        section.add(wanted, await _timed(spec, files), await _timed(spec, files))


async def _single_calls(report: Report, user: UUID, rounds: int) -> None:
    """By turns, so that whatever else the machine does meets all of them."""
    alone = SandboxSpec(user_id=user)
    layered = SandboxSpec(user_id=user, requirements="requests")
    connected = SandboxSpec(user_id=user, hosts=frozenset({"example.org"}))
    kinds: dict[str, tuple[SandboxSpec, dict[str, str]]] = {
        "fresh sandbox, a tool that imports nothing": (alone, HELLO),
        "fresh sandbox, a tool that imports json": (alone, USES_JSON),
        "fresh sandbox with the proxy": (connected, HELLO),
        "fresh sandbox with requests as a layer, imported": (layered, USES_REQUESTS),
    }
    times: dict[str, list[float]] = {
        name: [] for name in ("bare python -I -S", "bare, import requests", *kinds)
    }
    for _ in range(rounds):
        times["bare python -I -S"].append(_bare("print('hello')"))
        times["bare, import requests"].append(_bare(_with_layer(user)))
        for name, (spec, files) in kinds.items():
            times[name].append(await _timed(spec, files))
    section = report.section("one call (milliseconds)", ["what", "median", "p95", "× bare"])
    medians = {name: statistics.median(found) for name, found in times.items()}
    bare, imported, hello, _, _, requests = medians.values()
    for name, found in times.items():
        section.add(name, *Timing.of(found), medians[name] / bare)
    report.aims[f"without dependencies at most {MOST_ALONE:g} × bare ({hello / bare:.1f} ×)"] = (
        hello <= MOST_ALONE * bare
    )
    wording = f"with requests as a layer at most {MOST_WITH_REQUESTS:g} × bare ({requests / bare:.1f} ×)"
    report.aims[wording] = requests <= MOST_WITH_REQUESTS * bare
    report.notes.append(
        f"A bare Python that imports requests takes {imported / bare:.1f} × a bare start; "
        f"the sandbox takes {requests / imported:.2f} × that."
    )


def _with_layer(user: UUID) -> str:
    from apps.capabilities.sandbox.layers.store import layer_folder

    return f"import sys; sys.path.append({str(layer_folder(prepare(), user, ['requests']))!r}); import requests"


async def _in_a_build(report: Report, user: UUID, rounds: int) -> None:
    section = report.section("within the sandbox of a build (milliseconds)", ["what", "median"])
    spec = SandboxSpec(user_id=user, purpose=Purpose.BUILD, limits=BUILD_LIMITS)
    async with open_sandbox(spec) as sandbox:
        calls: dict[str, Callable[[], Any]] = {
            "run_code": lambda: sandbox.run_code("1 + 1"),
            "write_file": lambda: sandbox.write_file("a.txt", "text"),
            "run_command true": lambda: sandbox.run_command("true"),
            "run_capability": lambda: sandbox.run_capability(HELLO, {}),
        }
        for name, call in calls.items():
            await call()
            times = []
            for _ in range(rounds):
                began = time.perf_counter()
                await call()
                times.append((time.perf_counter() - began) * 1000)
            section.add(name, statistics.median(times))


async def _at_once(report: Report, calls: int) -> None:
    """One user with nearly half of the calls, asked first; nine others with the rest."""
    users = [uuid4() for _ in range(USERS)]
    few = calls // (2 * USERS)
    asked = [users[0]] * (calls - few * (USERS - 1)) + [user for _ in range(few) for user in users[1:]]
    begun: list[tuple[UUID, int]] = []
    before = processes.memory_bytes(os.getpid())
    began = time.perf_counter()
    ended = await asyncio.gather(*(_noted(user, number, begun) for number, user in enumerate(asked)))
    seconds = time.perf_counter() - began
    gc.collect()
    await asyncio.sleep(0.5)
    kept = processes.memory_bytes(os.getpid()) - before
    left = len(processes.descendants(os.getpid()))
    # A call's number by its user, in the order in which they began.
    numbers = {user: [number for who, number in begun if who == user] for user in dict.fromkeys(asked)}
    last = max(begun.index((user, found[0])) for user, found in numbers.items())
    report.section(
        f"{calls} calls at once, of {USERS} users",
        ["what", "figure"],
        [
            ("finished well", sum(ended)),
            ("seconds", seconds),
            ("calls a second", calls / seconds),
            ("calls that began before the last user's first", last),
            ("memory kept by the server (MB)", kept / 1e6),
            ("processes left", left),
        ],
    )
    report.aims[f"all {calls} finish"] = sum(ended) == calls
    report.aims["each user's in order of arrival"] = all(
        found == sorted(found) for found in numbers.values()
    )
    report.aims["none starved: everybody begins in the first rounds"] = last <= places() + 2 * USERS
    report.aims["memory returned, no process left"] = kept < MOST_MEMORY_KEPT and not left


async def _noted(user: UUID, number: int, begun: list[tuple[UUID, int]]) -> bool:
    """Runs a call and notes when it begins; whether it ended well."""

    async def listen(event: dict[str, Any]) -> None:
        if event["status"] == "preparing":
            begun.append((user, number))

    return (await run_capability(SandboxSpec(user_id=user), WORKS, {}, listen)).ok


def _bare(code: str) -> float:
    """As nice as a sandbox, so that whatever else the machine does holds both up alike."""
    began = time.perf_counter()
    command = [str(prepare().interpreter.path), "-I", "-S", "-B", "-c", code]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, cwd=Path("/"), start_new_session=True
    ) as process:
        stand_back(process.pid, watchdog().niceness)
    if process.returncode:
        raise RuntimeError(f"a bare Python ended with {process.returncode}")
    return (time.perf_counter() - began) * 1000


async def _timed(spec: SandboxSpec, files: dict[str, str]) -> float:
    began = time.perf_counter()
    outcome = await run_capability(spec, files, {})
    if not outcome.ok:
        raise RuntimeError(str(outcome.error))
    return (time.perf_counter() - began) * 1000
