"""One server for all modules, in which each has a person of its own, who is signed in on the command line."""

from collections.abc import Iterator
from copy import copy
from pathlib import Path

import pytest

from tests.chat.server import Server
from tests.cli.izzy import Izzy
from tests.peers.anthropic_server import AnthropicServer
from tests.peers.prepared import Person, with_people


@pytest.fixture(scope="session")
def model() -> Iterator[AnthropicServer]:
    with AnthropicServer.in_thread(turns_only=True) as peer:
        yield peer


@pytest.fixture(scope="session")
def shared_server(
    tmp_path_factory: pytest.TempPathFactory, model: AnthropicServer
) -> Iterator[tuple[Server, Iterator[Person]]]:
    """A running server and the people who own nothing there yet."""
    running = Server(tmp_path_factory.mktemp("server"), model.url, with_people())
    running.environment["ANTHROPIC_API_KEY"] = "key-for-tests"
    running.start()
    yield running, iter(with_people().people)
    running.stop()


@pytest.fixture(scope="module")
def person(shared_server: tuple[Server, Iterator[Person]]) -> Person:
    return next(shared_server[1])


@pytest.fixture(scope="module")
def server(shared_server: tuple[Server, Iterator[Person]], person: Person) -> Server:
    """The server as the module's person asks it."""
    theirs = copy(shared_server[0])
    theirs.token = person.token
    return theirs


@pytest.fixture
def izzy(server: Server, tmp_path: Path) -> Izzy:
    return Izzy(tmp_path, f"http://127.0.0.1:{server.port}", server.token)
