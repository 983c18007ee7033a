"""Many chats at once over websockets, with a ramp: errors, delay of each delta beside a bare Channels echo, processor time, memory."""

import asyncio
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks._chats import Measured, Pace, chat, delays_add, echoes
from benchmarks._network import model_server, web_process
from benchmarks._processes import Served, served
from benchmarks.report import Report, Timing

AIM_FACTOR, AIM_MORE_MS, AIM_ACKNOWLEDGED_MS = 2.0, 100.0, 1000.0
AIM_TURN_MS, AIM_DELTA_MS, AIM_PSS = 40.0, 0.3, 350.0
WARM_UP_SECONDS = 6.0
TURNS_AT_ONCE = 4


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--chats", type=int, default=150, help="chats at once (%(default)s)")
    parser.add_argument("--ramp", type=float, default=30, help="seconds until all have begun")
    parser.add_argument("--seconds", type=float, default=60, help="to measure after that")
    parser.add_argument("--rate", type=float, default=8, help="deltas a second in each chat")
    parser.add_argument("--processes", type=int, default=2, help="web processes (%(default)s)")
    parser.add_argument("--users", type=int, default=30, help="users who share the chats")
    parser.add_argument("--notes", type=int, default=50, help="notes of each user")
    parser.add_argument("--turns", type=int, default=40, help="turns of the first part")
    parser.add_argument("--database", default="", help="DATABASE_URL of an empty database")
    parser.add_argument("--redis", default="", help="REDIS_URL")


def run(options: dict[str, Any]) -> Report:
    return asyncio.run(_run(options))


async def _run(options: dict[str, Any]) -> Report:
    chats, processes = options["chats"], options["processes"]
    report = Report("load", settings=options)
    echoed = await _echoes(options)
    pace = Pace(rate=options["rate"])
    async with model_server(pace.answer) as (url, _):
        environment = {"ANTHROPIC_BASE_URL": url, "IZZY_WEB_PROCESSES": str(processes)}
        environment |= {"DATABASE_URL": options["database"]} if options["database"] else {}
        environment |= {"REDIS_URL": options["redis"]} if options["redis"] else {}
        with served(users=options["users"], notes=options["notes"], **environment) as izzy:
            await _warm(izzy, processes)
            report.settings["web processes found"] = len(izzy.processes("web"))
            await _turns(report, izzy, options["turns"])
            measured = Measured()
            figures = await _load(report, izzy, pace, options, measured)
            log = izzy.log
    _times(report, echoed, measured)
    locked = log.count("database is locked") + log.count("Traceback")
    report.section(
        "Chats at once",
        ["chats", "ended well", "errors", "tracebacks", "deltas", "deltas/s", "frames"],
        [
            (
                chats,
                measured.ended,
                len(measured.errors),
                locked,
                len(measured.deltas),
                len(measured.deltas) / options["seconds"],
                measured.frames,
            )
        ],
    )
    _aims(report, echoed, measured, figures, clean=not (measured.errors or locked))
    report.notes += sorted(set(measured.errors))[:5]
    return report


# --- Parts -----------------------------------------------------------------------------------------------------


async def _echoes(options: dict[str, Any]) -> list[float]:
    """As many sockets, each sending and getting back as many frames a second, at as many bare processes."""
    chats, rate = options["chats"], options["rate"]
    count = round(min(15.0, options["seconds"]) * rate)
    with tempfile.TemporaryDirectory(prefix="izzy-benchmark-") as folder, ExitStack() as stack:
        processes = [
            stack.enter_context(web_process(Path(folder), "benchmarks._network:echo"))
            for _ in range(options["processes"])
        ]
        begun = time.perf_counter() + 1
        times = await asyncio.gather(
            *(
                echoes(
                    processes[number % len(processes)].port,
                    count=count,
                    rate=rate,
                    begun=begun + number / chats / rate,
                )
                for number in range(chats)
            )
        )
    return list(chain.from_iterable(times))


async def _warm(izzy: Served, processes: int) -> None:
    """Turns until every process has loaded what it loads at first use, and has had time to."""
    await asyncio.sleep(WARM_UP_SECONDS)
    async with asyncio.TaskGroup() as group:
        for number in range(6 * processes):
            group.create_task(_chat(izzy, number, Measured()))
    await asyncio.sleep(3)


async def _turns(report: Report, izzy: Served, turns: int) -> None:
    """Turns of one delta each, a few at a time: what a turn costs but for its deltas."""
    measured = Measured()
    left = iter(range(turns))

    async def work() -> None:
        for number in left:
            await _chat(izzy, number, measured)

    before, worker = izzy.usage("web"), izzy.usage("worker")
    started = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(TURNS_AT_ONCE)))
    await asyncio.sleep(2)  # what follows on an answer
    seconds = time.perf_counter() - started
    idle = await _idle(izzy)
    spent = izzy.usage("web").seconds - before.seconds - idle * (seconds + 3)
    others = izzy.usage("worker").seconds - worker.seconds
    report.section(
        "Turns of one delta",
        [
            "turns",
            "web CPU ms a turn",
            "worker CPU ms a turn",
            "ended well",
            "p50 ms to the first delta",
        ],
        [
            (
                turns,
                spent * 1000 / turns,
                others * 1000 / turns,
                measured.ended,
                Timing.of(measured.first_delta).p50,
            )
        ],
    )
    report.aims[f"a turn costs the web process ≤ {AIM_TURN_MS:.0f} ms of CPU"] = (
        spent * 1000 / turns <= AIM_TURN_MS
    )
    report.notes += [
        f"idle, the web processes use {idle * 100:.1f} % of a processor",
        *measured.errors[:3],
    ]


async def _idle(izzy: Served) -> float:
    """Processors that the web processes use while nothing is asked of them."""
    before = izzy.usage("web").seconds
    await asyncio.sleep(3)
    return (izzy.usage("web").seconds - before) / 3


async def _load(
    report: Report, izzy: Served, pace: Pace, options: dict[str, Any], measured: Measured
) -> tuple[float, float]:
    """All chats, one answer each that lasts until the end; returns the milliseconds of CPU per delta, and the largest PSS."""
    begun = time.perf_counter()
    measured.first = begun + options["ramp"]
    measured.last = measured.first + options["seconds"]
    pace.count, pace.until = None, measured.last + 1

    async def begin(number: int) -> None:
        await asyncio.sleep(options["ramp"] * number / options["chats"])
        await _chat(izzy, number, measured)

    async with _window(izzy, measured) as figures:
        await asyncio.gather(*(begin(number) for number in range(options["chats"])))
    web, ramp_web, worker, client = figures["web"], figures["ramp"], figures["worker"], figures["client"]
    per_delta = web * 1000 / max(1, len(measured.deltas))
    pss = figures["pss"]
    report.section(
        "Processes while all chats run",
        [
            "web CPU ms a delta",
            "web CPU %",
            "worker CPU %",
            "benchmark CPU %",
            "web CPU % in the ramp",
            *(f"PSS {number + 1} MiB" for number in range(len(pss))),
        ],
        [
            (
                per_delta,
                web * 100 / options["seconds"],
                worker * 100 / options["seconds"],
                client * 100 / options["seconds"],
                ramp_web * 100 / options["ramp"] if options["ramp"] else 0.0,
                *pss,
            )
        ],
        digits=3,
    )
    return per_delta, max(pss)


@asynccontextmanager
async def _window(izzy: Served, measured: Measured) -> AsyncIterator[dict[str, Any]]:
    """Fills in, when it ends, what processes used between `first` and `last`."""
    figures: dict[str, Any] = {}

    async def look() -> None:
        start = izzy.usage("web").seconds
        await asyncio.sleep(measured.first - time.perf_counter())
        web, worker, own = izzy.usage("web").seconds, izzy.usage("worker").seconds, time.process_time()
        await asyncio.sleep(measured.last - time.perf_counter())
        now = izzy.usage("web")
        figures.update(ramp=web - start, web=now.seconds - web, pss=now.pss)
        figures.update(worker=izzy.usage("worker").seconds - worker, client=time.process_time() - own)

    looking = asyncio.create_task(look())
    try:
        yield figures
    finally:
        await looking


# --- A chat ----------------------------------------------------------------------------------------------------


async def _chat(izzy: Served, number: int, measured: Measured) -> None:
    headers = {"Authorization": f"Bearer {izzy.tokens[number % len(izzy.tokens)]}"}
    words = f"What did I plan for bed {number % 31}? Tell me all about it."
    await chat(izzy.port, headers, words, measured)


# --- The report ------------------------------------------------------------------------------------------------


def _times(report: Report, echoed: list[float], measured: Measured) -> None:
    rows = [
        ("bare Channels echo at this rate, round trip", echoed),
        ("text delta, from the model server to the client", measured.deltas),
        ("message to acknowledgement", measured.acknowledged),
        ("message to first delta", measured.first_delta),
    ]
    delays_add(report, "Delays, ms", rows)


def _aims(
    report: Report, echoed: list[float], measured: Measured, figures: tuple[float, float], *, clean: bool
) -> None:
    per_delta, pss = figures
    limit = AIM_FACTOR * Timing.of(echoed).p95 + AIM_MORE_MS
    report.aims |= {
        "no error, and every chat ends well": clean and measured.ended == report.settings["chats"],
        f"p95 of a delta ≤ 2 × the echo's + 100 ms ({limit:.0f} ms)": bool(measured.deltas)
        and Timing.of(measured.deltas).p95 <= limit,
        "p95 of an acknowledgement ≤ 1 s": bool(measured.acknowledged)
        and Timing.of(measured.acknowledged).p95 <= AIM_ACKNOWLEDGED_MS,
        f"CPU of the web processes per delta ≤ {AIM_DELTA_MS} ms": per_delta <= AIM_DELTA_MS,
        f"PSS of a web process ≤ {AIM_PSS:.0f} MiB": pss <= AIM_PSS,
    }
