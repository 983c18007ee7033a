"""Time a piece of text takes from the model server to the page, beside a bare Channels echo; many turns at once."""

import asyncio
import json
import statistics
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks._network import WebProcess, WebSocket, izzy_process, model_server, web_process
from benchmarks.report import Report, Timing

AIM_MS = 50.0
ECHOES = 300
TURN_SECONDS = 120


@dataclass
class Measured:
    """Milliseconds per delta, and what went wrong."""

    deltas: list[float] = field(default_factory=list)
    html: list[float] = field(default_factory=list)
    acknowledged: list[float] = field(default_factory=list)
    ended: int = 0
    errors: list[str] = field(default_factory=list)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--turns", type=int, default=50, help="turns at once in the second part")
    parser.add_argument("--deltas", type=int, default=60, help="pieces of text per turn")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two pieces")


def run(options: dict[str, Any]) -> Report:
    """The whole path: model server, SDK, loop, event log, websocket; and the echo's round trip in the same run."""
    return asyncio.run(_run(options["turns"], options["deltas"], options["pause"]))


async def _run(turns: int, deltas: int, pause: float) -> Report:
    async with model_server(lambda _: [{"type": "text", "text": _stamps(deltas, pause)}]) as (url, _):
        with (
            tempfile.TemporaryDirectory(prefix="izzy-benchmark-") as folder,
            web_process(Path(folder), "benchmarks._network:echo") as echo,
            izzy_process(ANTHROPIC_BASE_URL=url) as izzy,
        ):
            await _turn(izzy, Measured())
            floor = await _echoes(echo)
            alone = Measured()
            for _ in range(5):
                await _turn(izzy, alone)
            crowd = Measured()
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
    measured = (
        ("bare Channels echo, round trip", floor),
        ("text delta, one turn", alone.deltas),
        ("its HTML block, one turn", alone.html),
        (f"text delta, {turns} turns at once", crowd.deltas),
        (f"its HTML block, {turns} turns at once", crowd.html),
        ("message to acknowledgement, one turn", alone.acknowledged),
        (f"message to acknowledgement, {turns} at once", crowd.acknowledged),
    )
    report.section(
        "From the model server to the websocket client, ms",
        ["what", "n", "p50", "p95", "max"],
        [
            (what, len(times), *(Timing.of(times) if times else (None, None)), max(times, default=None))
            for what, times in measured
        ],
    )


async def _stamps(count: int, pause: float) -> AsyncIterator[str]:
    """Words that carry the time they were sent at: `@<nanoseconds of time.perf_counter_ns> `."""
    for _ in range(count):
        await asyncio.sleep(pause)
        yield f"@{time.perf_counter_ns()} "


async def _turn(izzy: WebProcess, measured: Measured) -> None:
    """One message over a websocket of its own, to the end of its turn."""
    page = await WebSocket.connect("127.0.0.1", izzy.port, "/ws/chat/", izzy.headers)
    try:
        async with asyncio.timeout(TURN_SECONDS):
            sent = time.perf_counter_ns()
            await page.send(
                json.dumps({"type": "message", "text": "Tell me the time.", "client_id": f"b{sent}"})
            )
            while (text := await page.receive()) is not None:
                if _take(json.loads(text), sent, measured):
                    return
        measured.errors.append("the socket was closed")
    except TimeoutError:
        measured.errors.append("a turn did not end in time")
    finally:
        page.close()


def _take(frame: dict[str, Any], sent: int, measured: Measured) -> bool:
    """Notes a frame's times; whether the turn is over."""
    now = time.perf_counter_ns()
    match frame["type"]:
        case "turn_queued":
            measured.acknowledged.append((now - sent) / 1e6)
        case "text_delta":
            measured.deltas += [(now - int(stamp)) / 1e6 for stamp in frame["text"].split("@")[1:]]
        case "html":
            newest = frame["html"].split("@")[-1].split("<")[0]
            measured.html.append((now - int(newest)) / 1e6)
        case "response":
            measured.ended += 1
            return True
        case "error" | "turn_stopped":
            measured.errors.append(str(frame.get("message", frame["type"])))
            return True
    return False


async def _echoes(echo: WebProcess) -> list[float]:
    """Round trips through the bare consumer."""
    socket = await WebSocket.connect("127.0.0.1", echo.port, "/")
    times = []
    for _ in range(ECHOES):
        await asyncio.sleep(0.005)
        started = time.perf_counter_ns()
        await socket.send(json.dumps({"type": "text_delta", "text": f"@{started} "}))
        await socket.receive()
        times.append((time.perf_counter_ns() - started) / 1e6)
    socket.close()
    return times
