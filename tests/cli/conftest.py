"""One server a module, with alice signed in on the command line."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chat.server import Server
from tests.cli.izzy import Izzy
from tests.peers.anthropic_server import AnthropicServer


@pytest.fixture(scope="module")
def model() -> Iterator[AnthropicServer]:
    with AnthropicServer.in_thread(turns_only=True) as peer:
        yield peer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, model: AnthropicServer) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("server"), model.url)
    running.environment["ANTHROPIC_API_KEY"] = "key-for-tests"
    running.start()
    yield running
    running.stop()


@pytest.fixture
def izzy(server: Server, tmp_path: Path) -> Izzy:
    return Izzy(tmp_path, f"http://127.0.0.1:{server.port}", server.token)
