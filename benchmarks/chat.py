"""Time a piece of text takes from the model server to the page, beside a bare Channels echo; many turns at once."""

import asyncio
import json
import statistics
import time
from argparse import ArgumentParser
from dataclasses import dataclass, field
from typing import Any

from benchmarks._model_server import TimedModelServer
from benchmarks._web_process import WebProcess, echo_process, izzy_process
from benchmarks._websocket import WebSocket
from benchmarks.report import Report

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
    async with TimedModelServer(deltas, pause) as model:
        with echo_process() as echo, izzy_process(ANTHROPIC_BASE_URL=model.url) as izzy:
            await _turn(izzy, Measured())
            floor = await _echoes(echo)
            alone = Measured()
            for _ in range(5):
                await _turn(izzy, alone)
            crowd = Measured()
            started = time.perf_counter()
            await asyncio.gather(*(_turn(izzy, crowd) for _ in range(turns)))
            seconds = time.perf_counter() - started
            locked = izzy.log.read_text().count("database is locked")
    report = Report("chat", settings={"deltas per turn": deltas, "pause s": pause, "turns at once": turns})
    table = report.section(
        "From the model server to the websocket client, ms", ["what", "n", "p50", "p95", "max"]
    )
    _row(table, "bare Channels echo, round trip", floor)
    _row(table, "text delta, one turn", alone.deltas)
    _row(table, "its HTML block, one turn", alone.html)
    _row(table, f"text delta, {turns} turns at once", crowd.deltas)
    _row(table, f"its HTML block, {turns} turns at once", crowd.html)
    _row(table, "message to acknowledgement, one turn", alone.acknowledged)
    _row(table, f"message to acknowledgement, {turns} at once", crowd.acknowledged)
    load = report.section(
        "Many turns at once", ["turns", "ended well", "errors", "database is locked", "seconds", "deltas/s"]
    )
    load.add(turns, crowd.ended, len(crowd.errors), locked, seconds, len(crowd.deltas) / seconds)
    report.aims[f"a delta reaches the page in ≤ {AIM_MS:.0f} ms (median, one turn)"] = (
        statistics.median(alone.deltas) <= AIM_MS
    )
    report.aims[f"{turns} turns at once end without an error"] = (
        crowd.ended == turns and not crowd.errors and not locked
    )
    report.notes += sorted(set(crowd.errors))[:5]
    return report


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


def _row(table: Any, what: str, values: list[float]) -> None:
    if not values:
        table.add(what, 0, None, None, None)
        return
    ordered = sorted(values)
    table.add(what, len(ordered), statistics.median(ordered), ordered[int(len(ordered) * 0.95)], ordered[-1])
