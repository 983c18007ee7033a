"""Time a piece of text takes from the model server to the page, beside a bare Channels echo; many turns at once."""

import asyncio
import statistics
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from benchmarks._chats import Measured, Pace, chat, delays_add, echoes
from benchmarks._network import WebProcess, izzy_process, model_server, web_process
from benchmarks.report import Report

AIM_MS = 50.0
ECHOES, ECHO_RATE = 300, 200.0


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--turns", type=int, default=50, help="turns at once in the second part")
    parser.add_argument("--deltas", type=int, default=60, help="pieces of text per turn")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two pieces")


def run(options: dict[str, Any]) -> Report:
    """The whole path: model server, SDK, loop, event log, websocket; and the echo's round trip in the same run."""
    return asyncio.run(_run(options["turns"], options["deltas"], options["pause"]))


async def _run(turns: int, deltas: int, pause: float) -> Report:
    async with model_server(Pace(1 / pause, deltas).answer) as (url, _):
        with (
            tempfile.TemporaryDirectory(prefix="izzy-benchmark-") as folder,
            web_process(Path(folder), "benchmarks._network:echo") as echo,
            izzy_process(ANTHROPIC_BASE_URL=url) as izzy,
        ):
            await _turn(izzy, Measured())
            begun = time.perf_counter()
            floor = await echoes(echo.port, count=ECHOES, rate=ECHO_RATE, begun=begun)
            alone = Measured(html=[])
            for _ in range(5):
                await _turn(izzy, alone)
            crowd = Measured(html=[])
            started = time.perf_counter()
            await asyncio.gather(*(_turn(izzy, crowd) for _ in range(turns)))
            seconds = time.perf_counter() - started
            locked = izzy.log.count("database is locked")
    report = Report(
        "chat", settings={"deltas per turn": deltas, "pause s": pause, "turns at once": turns}
    )
    _add_times(report, turns, floor, alone, crowd)
    report.section(
        "Many turns at once",
        ["turns", "ended well", "errors", "database is locked", "seconds", "deltas/s"],
        [(turns, crowd.ended, len(crowd.errors), locked, seconds, len(crowd.deltas) / seconds)],
    )
    report.aims[f"a delta reaches the page in ≤ {AIM_MS:.0f} ms (median, one turn)"] = (
        statistics.median(alone.deltas) <= AIM_MS
    )
    report.aims[f"{turns} turns at once end without an error"] = (
        crowd.ended == turns and not crowd.errors and not locked
    )
    report.notes += sorted(set(crowd.errors))[:5]
    return report


def _add_times(report: Report, turns: int, floor: list[float], alone: Measured, crowd: Measured) -> None:
    rows = [
        ("bare Channels echo, round trip", floor),
        ("text delta, one turn", alone.deltas),
        ("its HTML block, one turn", alone.html or []),
        (f"text delta, {turns} turns at once", crowd.deltas),
        (f"its HTML block, {turns} turns at once", crowd.html or []),
        ("message to acknowledgement, one turn", alone.acknowledged),
        (f"message to acknowledgement, {turns} at once", crowd.acknowledged),
    ]
    delays_add(report, "From the model server to the websocket client, ms", rows)


async def _turn(izzy: WebProcess, measured: Measured) -> None:
    await chat(izzy.port, izzy.headers, "Tell me the time.", measured)
