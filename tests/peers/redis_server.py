"""A real Redis on a port of its own, in memory only."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.peers.ports import free_port
from tests.waiting import PATIENCE, eventually


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """REDIS_URL of a server that lives as long as the module's tests."""
    port = free_port()
    with redis_on(port, tmp_path_factory.mktemp("redis")):
        yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def redis_on(port: int, folder: Path) -> Iterator[None]:
    """A server on that port; it is answering when this yields."""
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is missing")
        pytest.skip("redis-server is not installed")
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    server = subprocess.Popen([program, *options, "--dir", str(folder)], stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: _answers(port), lambda: "redis-server does not answer")
        yield
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _answers(port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def layers(url: str) -> dict[str, Any]:
    """CHANNEL_LAYERS over that Redis."""
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    return {"default": {"BACKEND": backend, "CONFIG": {"hosts": [url], "prefix": "izzy-test"}}}
