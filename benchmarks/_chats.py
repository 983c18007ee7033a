"""Chats over websockets and a bare echo, timed in milliseconds from the stamps that the model server's pieces carry; and the answers of
that server, which come piece by piece at a steady rate."""

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from benchmarks._network import Block, WebSocket
from benchmarks.report import Report, Timing

PROSE = """Beds along the south wall dry out first, so they are watered in the evening, and **twice a week** is enough in May.

- Tomatoes want the warm corner, and a roof of glass or foil over them.
- Beans climb where the poles of last year still stand.

What is sown in `April` goes out after the frosts, one row every ten days, so that not everything is ripe at once. """
PIECES = [PROSE[start : start + 16] for start in range(0, len(PROSE), 16)]


@dataclass
class Pace:
    """How the answers to users come: `count` pieces (None: until `until`, of time.perf_counter), `rate` a second."""

    rate: float = 8.0
    count: int | None = 1
    until: float = 0.0

    def answer(self, request: dict[str, Any]) -> list[Block]:
        """The blocks for `model_server`; side jobs, such as titles and reading for memory, get theirs at once."""
        if tool := (request.get("tool_choice") or {}).get("name"):
            given = {"worth_remembering": False, "reason": "none", "items": []}
            return [{"type": "tool_use", "id": "toolu_load", "name": tool, "input": given}]
        return [{"type": "text", "text": "Garden" if "haiku" in request["model"] else self.pieces()}]

    async def pieces(self) -> AsyncIterator[str]:
        """Each carries the time at which it was sent: `t<nanoseconds of perf_counter_ns> `."""
        begun, number = time.perf_counter(), 0
        while number < self.count if self.count is not None else time.perf_counter() < self.until:
            await asyncio.sleep(begun + number / self.rate - time.perf_counter())
            yield f"{PIECES[number % len(PIECES)]}t{time.perf_counter_ns()} "
            number += 1


STAMP = re.compile(r"t(\d{10,})")
PATIENCE = 60.0


@dataclass
class Measured:
    """Of all chats, times in milliseconds; deltas are counted and timed between `first` and `last` (perf_counter) alone. `html`,
    where it is not None, takes the times of the blocks that are made of them."""

    first: float = 0.0
    last: float = float("inf")
    deltas: list[float] = field(default_factory=list)
    frames: int = 0
    html: list[float] | None = None
    acknowledged: list[float] = field(default_factory=list)
    first_delta: list[float] = field(default_factory=list)
    ended: int = 0
    errors: list[str] = field(default_factory=list)


async def chat(port: int, headers: Mapping[str, str], words: str, measured: Measured) -> None:
    """One message over a websocket of its own, to the end of its turn."""
    try:
        page = await WebSocket.connect("127.0.0.1", port, "/ws/chat/", dict(headers))
    except (OSError, asyncio.IncompleteReadError) as error:
        measured.errors.append(f"could not connect: {error!r}")
        return
    try:
        sent = time.perf_counter_ns()
        await page.send(
            json.dumps({"type": "message", "text": words, "client_id": f"b{sent}-{id(page)}"})
        )
        seen = 0
        while True:
            async with asyncio.timeout(PATIENCE):
                text = await page.receive() or ""
            now = time.perf_counter_ns()
            if text.startswith('{"type":"html"'):
                if measured.html is not None and (stamps := STAMP.findall(text)):
                    measured.html.append((now - int(stamps[-1])) / 1e6)
            elif text.startswith('{"type":"text_delta"'):
                seen += 1
                if seen == 1:
                    measured.first_delta.append((now - sent) / 1e6)
                if measured.first <= now / 1e9 <= measured.last:
                    measured.frames += 1
                    measured.deltas += [(now - int(stamp)) / 1e6 for stamp in STAMP.findall(text)]
            elif not text or _other(json.loads(text), now - sent, measured):
                break
        if not text:
            measured.errors.append("the socket was closed")
    except (TimeoutError, OSError, asyncio.IncompleteReadError) as error:
        measured.errors.append("a chat went silent" if isinstance(error, TimeoutError) else repr(error))
    finally:
        page.close()


def _other(frame: dict[str, Any], took: int, measured: Measured) -> bool:
    """Notes a frame that is no text; whether the turn is over."""
    match frame["type"]:
        case "turn_queued":
            measured.acknowledged.append(took / 1e6)
        case "response":
            measured.ended += 1
            return True
        case "error" | "turn_stopped" | "model_retry":
            measured.errors.append(str(frame.get("message", frame["type"])))
            return bool(frame["type"] != "model_retry")
    return False


async def echoes(port: int, *, count: int, rate: float, begun: float) -> list[float]:
    """Round trips of frames that are sent to the bare consumer, so many a second from `begun` on."""
    socket = await WebSocket.connect("127.0.0.1", port, "/")
    times = []
    for number in range(count):
        await asyncio.sleep(begun + number / rate - time.perf_counter())
        stamp = time.perf_counter_ns()
        await socket.send(json.dumps({"type": "text_delta", "text": f"t{stamp} "}))
        await socket.receive()
        times.append((time.perf_counter_ns() - stamp) / 1e6)
    socket.close()
    return times


def delays_add(report: Report, title: str, rows: Iterable[tuple[str, list[float]]]) -> None:
    """A table of what was timed."""
    report.section(
        title,
        ["what", "n", "p50", "p95", "max"],
        [
            (what, len(times), *(Timing.of(times) if times else (None, None)), max(times, default=None))
            for what, times in rows
        ],
    )
