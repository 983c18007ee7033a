"""A real encoder for a benchmark: a loopback server that answers as Ollama does, with the vectors of Izzy's own `minilm`.

It is a process of its own, as Ollama is. By hand: `python -m benchmarks._ollama --port 11434`, then
`IZZY_EMBEDDER=ollama:all-minilm`.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

from django.conf import settings

from apps.search.embedders.base import EmbedderDown
from apps.search.embedders.minilm import MAX_TOKENS, MiniLM, MiniLMEmbedder, model

MODEL = "all-minilm"
VERSION = "0.12.6"
AT_ONCE = 500
STARTED = "listening on "
PATIENCE = 60.0
"""Seconds."""
NAMES = frozenset({MODEL, f"{MODEL}:latest", f"{MODEL}:l6-v2"})
TAGS = {
    "models": [
        {
            "name": f"{MODEL}:latest",
            "model": f"{MODEL}:latest",
            "size": 91_000_000,
            "details": {
                "format": "safetensors",
                "family": "bert",
                "families": ["bert"],
                "parameter_size": "23M",
                "quantization_level": "F32",
            },
        }
    ]
}


class Refused(Exception):
    """The answer of Ollama to a request that it does not take: a status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status, self.message = status, message


def embedded(body: Any, encoder: MiniLM) -> dict[str, Any]:
    """The answer to a request to `/api/embed`. Raises Refused."""
    began = time.perf_counter_ns()
    if not isinstance(body, dict):
        raise Refused(400, "missing request body")
    name, texts = body.get("model"), body.get("input", [])
    if name not in NAMES:
        raise Refused(404, f'model "{name}" not found, try pulling it first')
    texts = [texts] if isinstance(texts, str) and texts else texts or []
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Refused(400, "invalid input type")
    if body.get("truncate") is False and any(encoder.is_too_long(text) for text in texts):
        raise Refused(400, f"the input length exceeds the context length of {MAX_TOKENS}")
    vectors = encoder.embed(texts)
    return {
        "model": name,
        "embeddings": vectors.tolist(),
        "total_duration": time.perf_counter_ns() - began,
        "load_duration": 0,
        "prompt_eval_count": encoder.count(texts),
    }


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/":
            self._answer(200, b"Ollama is running", "text/plain; charset=utf-8")
        elif self.path == "/api/version":
            self._json(200, {"version": VERSION})
        elif self.path == "/api/tags":
            self._json(200, TAGS)
        else:
            self._answer(404, b"404 page not found", "text/plain")

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.path != "/api/embed":
            return self._answer(404, b"404 page not found", "text/plain")
        try:
            return self._json(200, embedded(json.loads(content or b"null"), model()))
        except ValueError as error:
            return self._json(400, {"error": str(error)})
        except Refused as refusal:
            return self._json(refusal.status, {"error": refusal.message})

    def _json(self, status: int, answer: dict[str, Any]) -> None:
        self._answer(status, json.dumps(answer).encode(), "application/json; charset=utf-8")

    def _answer(self, status: int, content: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(port: int = 0) -> Iterator[str]:
    """The server's address while the block runs, in threads of this process. Raises EmbedderDown."""
    model()
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def add_argument(parser: ArgumentParser) -> None:
    """The option `--encoder` of a benchmark, for `encoder_for` and `side_vectors_make`."""
    parser.add_argument(
        "--encoder",
        action="store_true",
        help="with a real encoder (minilm) beside the bundled vectors",
    )


def side_vectors_make(share: float = 1.0) -> None:
    """Give a share of all passages, drawn at random, their vectors of the encoder in use, if there is one."""
    from apps.search.filling import side_fill
    from apps.search.index import cache
    from apps.search.models import Passage
    from apps.search.spaces import encoder_name

    if not encoder_name():
        return
    side_fill(encoder_name())
    draw = random.Random(1)
    ids = Passage.objects.order_by("id").values_list("id", flat=True)
    bare = [key for key in ids if draw.random() >= share]
    for start in range(0, len(bare), AT_ONCE):
        Passage.objects.filter(id__in=bare[start : start + AT_ONCE]).update(side_vector=None)
    cache.forget()


@contextmanager
def encoder_for(options: dict[str, Any]) -> Iterator[None]:
    """IZZY_EMBEDDER is `minilm` while the block runs, where `--encoder` was given, and is waited for: what is found must not
    depend on how busy the machine is."""
    from django.test import override_settings

    from apps.search import spaces

    name = MiniLMEmbedder.name if options["encoder"] else settings.IZZY_EMBEDDER
    with override_settings(IZZY_EMBEDDER=name), patch.object(spaces, "ANSWER_SECONDS", PATIENCE):
        yield


@contextmanager
def server_process() -> Iterator[str]:
    """The address of a server in a process of its own. Raises CommandError where it does not start."""
    from django.conf import settings
    from django.core.management.base import CommandError

    # One thread: for texts of a line or two a second one waits more than it works.
    own = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks._ollama", "--port", "0", "--with-parent"]
    pipe, folder = subprocess.PIPE, settings.BASE_DIR
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=folder, env=own, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            if not line.startswith(STARTED):
                raise CommandError(line.strip() or "The encoder did not start; see above.")
            yield line.removeprefix(STARTED).strip()
        finally:
            process.terminate()


def main() -> None:
    parser = argparse.ArgumentParser(description="all-MiniLM-L6-v2, served as Ollama serves it.")
    parser.add_argument("--port", type=int, default=11434)
    parser.add_argument(
        "--with-parent",
        action="store_true",
        help="end when standard input does, however its writer ended",
    )
    options = parser.parse_args()
    try:
        with serving(options.port) as url:
            print(f"{STARTED}{url}", flush=True)
            if options.with_parent:
                sys.stdin.read()
            else:
                threading.Event().wait()
    except EmbedderDown as error:
        print(error, flush=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit()


if __name__ == "__main__":
    main()
