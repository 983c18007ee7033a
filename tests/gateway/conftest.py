"""One server for the modules of MCP, in each of which two people of its own ask it."""

from collections.abc import Iterator

import pytest

from tests.chat.server import Server
from tests.gateway.mcp_site import Site, site_of
from tests.peers.prepared import Person, with_people


@pytest.fixture(scope="session")
def mcp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Iterator[Person]]]:
    """A running server and the people who own nothing there yet."""
    server = Server(tmp_path_factory.mktemp("mcp"), "", with_people())
    yield server.start(), iter(with_people().people)
    server.stop()


@pytest.fixture(scope="module")
def site(mcp_server: tuple[Server, Iterator[Person]]) -> Site:
    server, people = mcp_server
    return site_of(server, next(people), next(people))
