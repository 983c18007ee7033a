"""A loopback server that answers as Ollama does, with the vectors of Izzy's own `minilm`: what of Ollama can be tried without it.

`python -m benchmarks._ollama --port 11434`, then `IZZY_EMBEDDER=ollama:all-minilm`.
"""

import argparse
import json
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from apps.search.embedders.base import EmbedderDown
from apps.search.embedders.own import MINILM, model
from apps.search.embedders.transformer import MAX_TOKENS, Transformer

MODEL = "all-minilm"
VERSION = "0.12.6"
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


def embedded(body: Any, encoder: Transformer) -> dict[str, Any]:
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
        "prompt_eval_count": sum(map(len, encoder.tokens(texts))),
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
            return self._json(200, embedded(json.loads(content or b"null"), model(MINILM)))
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
    model(MINILM)
    server = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description="all-MiniLM-L6-v2, served as Ollama serves it.")
    parser.add_argument("--port", type=int, default=11434)
    options = parser.parse_args()
    try:
        with serving(options.port) as url:
            print(f"listening on {url}", flush=True)
            threading.Event().wait()
    except EmbedderDown as error:
        print(error, flush=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit()


if __name__ == "__main__":
    main()
