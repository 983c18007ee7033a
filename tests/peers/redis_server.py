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

from tests.peers.network import Host
from tests.peers.ports import free_port
from tests.waiting import PATIENCE, eventually


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """REDIS_URL of a server that lives as long as the module's tests."""
    port = free_port()
    with redis_on(port, tmp_path_factory.mktemp("redis")):
        yield f"redis://127.0.0.1:{port}/0"


@contextmanager
def redis_on(port: int, folder: Path, host: Host | None = None) -> Iterator[None]:
    """A server on that port, of a host of its own where one is given; it is answering when this yields."""
    program = shutil.which("redis-server")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is missing")
        pytest.skip("redis-server is not installed")
    address = host.address if host else "127.0.0.1"
    options = ["--port", str(port), "--bind", address, "--save", "", "--protected-mode", "no"]
    command = [program, *options, "--dir", str(folder)]
    server = subprocess.Popen(host.command(*command) if host else command, stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: _answers(address, port), lambda: "redis-server does not answer")
        yield
    finally:
        server.terminate()
        server.wait(PATIENCE)


def _answers(address: str, port: int) -> bool:
    with closing(socket.socket()) as probe:
        return probe.connect_ex((address, port)) == 0


def layers(url: str) -> dict[str, Any]:
    """CHANNEL_LAYERS over that Redis."""
    backend = "channels_redis.pubsub.RedisPubSubChannelLayer"
    return {"default": {"BACKEND": backend, "CONFIG": {"hosts": [url], "prefix": "izzy-test"}}}
