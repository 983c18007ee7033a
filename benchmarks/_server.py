"""A real web server over a scratch database, asked one request after the other."""

import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings

START_SECONDS = 60.0


@contextmanager
def web_server(data_dir: Path) -> Iterator[int]:
    """daphne on a free port of the loopback interface, with the database of that data directory; yields the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = os.environ | {
        "IZZY_DATA_DIR": str(data_dir),
        "IZZY_THROTTLE": "off",
        "DJANGO_SETTINGS_MODULE": "benchmarks._server_settings",
    }
    command = [
        sys.executable,
        "-m",
        "daphne",
        "-v",
        "0",
        "-b",
        "127.0.0.1",
        "-p",
        str(port),
        "izzysite.asgi:application",
    ]
    process = subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stderr=subprocess.DEVNULL)
    try:
        _wait(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(10)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the web server did not start")


class Caller:
    """A program with a token and one connection that is kept open."""

    def __init__(self, port: int, token: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def get(self, path: str) -> bytes:
        return self._ask("GET", path, None)

    def post(self, path: str, body: dict[str, object]) -> bytes:
        return self._ask("POST", path, json.dumps(body))

    def _ask(self, method: str, path: str, body: str | None) -> bytes:
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        content = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"{path} answered {answer.status}: {content[:300]!r}")
        return content

    def close(self) -> None:
        self._connection.close()
