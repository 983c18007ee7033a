"""The reading process: for every document a copy of itself, which answers and ends. Imports nothing of Django.

A job arrives as a socket over the control socket. On it: one line of JSON (`kind`, `charset`, `url`, `bytes`), then
the document. The answer: lines of JSON, `{"title"}`, `{"text", "page"?, "of"?}` …, of an image `{"picture", …}`, and `{"end": true}` at the
end of a document that was read to its end.
"""

import gc
import json
import os
import resource
import signal
import socket
from collections.abc import Iterator
from typing import Any

from apps.agent.web.reader import documents, images

WALL_FACTOR = 1.3
"""Of the processor time: a document that waits for nothing needs little more."""
SIDE_BY_SIDE = 2
MAX_CHARS = 2_000_000

READERS = {
    "html": documents.read_html,
    "pdf": documents.read_pdf,
    "text": documents.read_text,
    "image": images.read_image,
}


def serve(control_fd: int, cpu_seconds: int, memory_bytes: int) -> None:
    """Takes jobs until the server is gone; each may use that much."""
    documents.warm_up()
    gc.freeze()
    control = socket.socket(fileno=control_fd)
    running: set[int] = set()
    while True:
        _, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not fds:
            return
        while len(running) >= SIDE_BY_SIDE:
            running.discard(os.wait()[0])
        pid = os.fork()
        if pid == 0:
            control.close()
            _limit(cpu_seconds, memory_bytes)
            _answer(socket.socket(fileno=fds[0]))
            os._exit(0)
        running.add(pid)
        os.close(fds[0])
        running -= {pid for pid in running if os.waitpid(pid, os.WNOHANG)[0]}


def _answer(job: socket.socket) -> None:
    try:
        with job.makefile("rb") as given, job.makefile("wb") as out:
            head = json.loads(given.readline())
            for entry in _read(head, given.read(head["bytes"])):
                out.write(json.dumps(entry).encode() + b"\n")
                out.flush()
    except Exception:  # noqa: BLE001  whatever a parser raises on hostile input: the answer stays without an end
        os._exit(1)


def _read(head: dict[str, Any], body: bytes) -> Iterator[dict[str, Any]]:
    left = MAX_CHARS
    for entry in READERS[head["kind"]](body, charset=head["charset"], url=head["url"]):
        piece = str(entry.get("text", ""))
        if len(piece) > left:
            yield entry | {"text": piece[:left]}
            return
        left -= len(piece)
        yield entry
    yield {"end": True}


def _limit(cpu_seconds: int, memory_bytes: int) -> None:
    """The alarm ends the process in the kernel, also in the middle of a parser written in C."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(round(cpu_seconds * WALL_FACTOR))
    for limit, value in (
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
