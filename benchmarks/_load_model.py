"""A model server for many streams at once: every answer comes piece by piece at a steady rate, over connections that are kept open."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
USAGE = {"input_tokens": 1000, "output_tokens": 1}
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
    sent: int = 0  # pieces of all answers so far
    problems: list[str] = field(default_factory=list)


@asynccontextmanager
async def paced_model(pace: Pace) -> AsyncIterator[str]:
    """Yields the server's address. Pieces of an answer carry the time at which they were sent: `t<nanoseconds of perf_counter_ns> `."""
    tasks: set[asyncio.Task[None]] = set()

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
                size = int(head.split("content-length:")[1].split("\r\n")[0])
                await _answer(json.loads(await reader.readexactly(size)), writer, pace)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        except (
            LookupError,
            ValueError,
        ) as error:  # it would only be seen as an answer that does not come
            pace.problems.append(f"model server: {error!r}")
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0, limit=2**26, backlog=1024)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=5)


async def _answer(request: dict[str, Any], writer: asyncio.StreamWriter, pace: Pace) -> None:
    writer.write(HEAD)
    _write(writer, _beginning(request["model"]))
    tool = (request.get("tool_choice") or {}).get("name")
    if tool or "haiku" in request["model"]:  # side jobs: titles, and reading for memory
        given = {"worth_remembering": False, "reason": "none", "items": []}
        for event in _tool_use(tool, given) if tool else _text(["Garden"]):
            _write(writer, event)
    else:
        _write(writer, _text_begins())
        begun = time.perf_counter()
        number = 0
        while number < pace.count if pace.count is not None else time.perf_counter() < pace.until:
            await asyncio.sleep(begun + number / pace.rate - time.perf_counter())
            piece = PIECES[number % len(PIECES)]
            _write(writer, _delta(f"{piece}t{time.perf_counter_ns()} "))
            number += 1
            pace.sent += 1
            await writer.drain()
        _write(writer, {"type": "content_block_stop", "index": 0})
    reason = "tool_use" if tool else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    _write(writer, {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
    _write(writer, {"type": "message_stop"})
    writer.write(b"0\r\n\r\n")
    with suppress(ConnectionError):
        await writer.drain()


def _write(writer: asyncio.StreamWriter, event: dict[str, Any]) -> None:
    data = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
    writer.write(b"%x\r\n%s\r\n" % (len(data), data))


def _beginning(model: str) -> dict[str, Any]:
    message = {"id": "msg_load", "type": "message", "role": "assistant", "model": model, "content": []}
    return {
        "type": "message_start",
        "message": {**message, "stop_reason": None, "stop_sequence": None, "usage": USAGE},
    }


def _text_begins() -> dict[str, Any]:
    return {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}


def _delta(text: str) -> dict[str, Any]:
    return {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text},
    }


def _text(pieces: list[str]) -> list[dict[str, Any]]:
    return [_text_begins(), *map(_delta, pieces), {"type": "content_block_stop", "index": 0}]


def _tool_use(name: str, given: dict[str, Any]) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": "toolu_load", "name": name, "input": {}}
    delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
    return [
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
    ]
