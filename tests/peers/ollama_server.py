"""A loopback server that speaks Ollama's embedding endpoint, for tests of the real client.

It makes a vector from the words of a text (same words, same direction), remembers what it was asked, and can be down,
slow, without the model, or talk nonsense of many kinds (`BAD_MODES`). From the command line: `python -m tests.peers.ollama_server --port 11434`.
"""

import argparse
import hashlib
import json
import math
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

DIMENSION = 64
MODELS = frozenset({"nomic-embed-text", "mxbai-embed-large", "all-minilm", "plain"})
BODIES = {
    "nonsense": b"<html>a proxy's page</html>",
    "half": b'{"model":"plain","embeddings":[[0.25,0.5',
}
"""Its answers, with status 200, instead of vectors, by mode."""
BAD_MODES = ("broken", *BODIES, "short", "nan", "other", "closes", "cut", "slow", "trickles")
TRICKLE_SECONDS = 0.02


def vector_of(text: str, dimension: int = DIMENSION) -> list[float]:
    """The sum of one fixed direction per word of the text."""
    total = [0.0] * dimension
    for word in re.findall(r"\w+", text.lower()):
        digest = hashlib.blake2b(word.encode(), digest_size=dimension).digest()
        total = [value + byte - 127.5 for value, byte in zip(total, digest, strict=True)]
    return total


@dataclass
class OllamaPeer:
    """The requests that the server got (`requests`: JSON bodies) and how it answers. `url` has no trailing slash."""

    url: str = ""
    dimension: int = DIMENSION
    mode: str = "well"
    """`well`, one of BODIES, `broken` (500), `short` (one vector too few), `nan`, `other` (of another dimension), `closes` the
    connection, `cut` (half of what it announced), `slow` (until `go_on`), `trickles` (a byte at a time)."""
    requests: list[dict[str, Any]] = field(default_factory=list)
    context: int = 0
    """Words that a text may have, 0: any number."""
    go_on: threading.Event = field(default_factory=threading.Event)

    @property
    def texts(self) -> list[str]:
        """All texts that were sent to be embedded, in order."""
        return [text for request in self.requests for text in request["input"]]

    def answer(self, body: dict[str, Any]) -> tuple[int, bytes]:
        self.requests.append(body)
        if self.mode == "broken":
            return 500, b'{"error":"out of memory"}'
        if self.mode in BODIES:
            return 200, BODIES[self.mode]
        if body["model"].split(":")[0] not in MODELS:
            return 404, b'{"error":"model not found, try pulling it first"}'
        if self.context and any(len(text.split()) > self.context for text in body["input"]):
            return 400, b'{"error":"the input length exceeds the context length"}'
        vectors = [vector_of(text, self.dimension) for text in body["input"]]
        if self.mode == "short":
            vectors = vectors[:-1]
        if self.mode == "nan":
            vectors[-1][0] = math.nan
        if self.mode == "other":
            vectors = [vector[:-8] for vector in vectors]
        return 200, json.dumps({"model": body["model"], "embeddings": vectors}).encode()


class _Handler(BaseHTTPRequestHandler):
    peer: ClassVar[OllamaPeer]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, content = self.peer.answer(body) if self.path == "/api/embed" else (404, b"{}")
        mode = self.peer.mode
        if mode == "closes":
            self.close_connection = True
            return
        if mode == "slow":
            self.peer.go_on.wait()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        with suppress(ConnectionError):
            self._write(content, mode)

    def _write(self, content: bytes, mode: str) -> None:
        if mode not in {"cut", "trickles"}:
            self.wfile.write(content)
            return
        self.close_connection = True
        if mode == "cut":
            self.wfile.write(content[: len(content) // 2])
            return
        for byte in content:
            self.wfile.write(bytes([byte]))
            if self.peer.go_on.wait(TRICKLE_SECONDS):
                break

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def ollama_server(port: int = 0) -> Iterator[OllamaPeer]:
    """The server on a port of the loopback interface (0: a free one) while the block runs."""
    peer = OllamaPeer()
    handler = type("Handler", (_Handler,), {"peer": peer})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    peer.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield peer
    finally:
        peer.go_on.set()
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description="An embedding server for trying things out.")
    parser.add_argument("--port", type=int, default=11434)
    with ollama_server(parser.parse_args().port) as peer:
        print(f"listening on {peer.url}")
        threading.Event().wait()


if __name__ == "__main__":
    main()
