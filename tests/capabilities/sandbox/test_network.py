"""A tool reaches the hosts that were approved, over the proxy, and nothing else."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from apps.capabilities.sandbox.base import BUILD_LIMITS, Purpose, RunResult
from apps.capabilities.sandbox.bubblewrap.backend import BubblewrapBackend

from .backend_suite import opened, run_main, small, spec

FETCH = """
import urllib.request
def run(args):
    with urllib.request.urlopen(args['url'], timeout=10) as answer:
        return answer.read().decode()
"""
TUNNEL = """
import socket
def run(args):
    end = socket.create_connection(('127.0.0.1', 3128), 5)
    end.sendall(args['head'].encode('latin-1'))
    end.settimeout(5)
    return end.recv(1000).decode('latin-1').splitlines()[0]
"""


@dataclass
class Site:
    """A server on loopback that remembers what it was asked."""

    port: int = 0
    heads: list[str] = field(default_factory=list)

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        path = head.split(" ")[1]
        if path.startswith("/to/"):
            status, extra, body = "302 Found", f"Location: http://{path[4:]}\r\n", b""
        else:
            status, extra, body = "200 OK", "", b"x" * 3_000_000 if path == "/large" else b"it works"
        writer.write(f"HTTP/1.1 {status}\r\n{extra}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()


@pytest.fixture
async def site(settings: Any) -> AsyncIterator[Site]:
    """`api.test` on a port of loopback, which the operator allows by name."""
    found = Site()
    server = await asyncio.start_server(found.answer, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    settings.IZZY_PRIVATE_HOSTS = [f"api.test:{found.port}=127.0.0.1"]
    async with server:
        yield found


async def fetch(backend: BubblewrapBackend, site: Site, url: str, **changed: Any) -> RunResult:
    hosts = changed.pop("hosts", frozenset({f"api.test:{site.port}"}))
    return await run_main(backend, FETCH, {"url": url}, hosts=hosts, **changed)


def message(outcome: RunResult) -> str:
    assert outcome.error is not None, outcome.result
    return outcome.error.message


async def test_an_approved_host_is_reached_and_named_in_the_outcome(
    bubblewrap: BubblewrapBackend, site: Site
) -> None:
    outcome = await fetch(bubblewrap, site, f"http://api.test:{site.port}/a?b=1")
    assert outcome.result == "it works"
    assert outcome.hosts_used == ("api.test",)
    assert site.heads[0].startswith("GET /a?b=1 HTTP/1.1\r\n")
    assert f"Host: api.test:{site.port}" in site.heads[0]
    assert "Proxy" not in site.heads[0]


async def test_a_tunnel_to_an_approved_host_is_opened(bubblewrap: BubblewrapBackend, site: Site) -> None:
    head = f"CONNECT api.test:{site.port} HTTP/1.1\r\n\r\n"
    hosts = frozenset({f"api.test:{site.port}"})
    outcome = await run_main(bubblewrap, TUNNEL, {"head": head}, hosts=hosts)
    assert outcome.result == "HTTP/1.1 200 Connection established"


@pytest.mark.parametrize(
    "url",
    [
        "http://other.test:{port}/",
        "http://api.test/",
        "http://api.test:22/",
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f000001:{port}/",
        "http://[::1]:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "http://metadata.google.internal/",
        "http://api.test.evil.test:{port}/",
        "http://evilapi.test:{port}/",
        "https://example.org/",
    ],
)
async def test_other_hosts_ports_and_addresses_are_refused(
    bubblewrap: BubblewrapBackend, site: Site, url: str
) -> None:
    outcome = await fetch(bubblewrap, site, url.format(port=site.port))
    assert "403" in message(outcome)
    assert "allowed" in message(outcome)
    assert site.heads == []


@pytest.mark.parametrize("target", ["127.0.0.1:{port}/", "169.254.169.254/", "other.test:{port}/"])
async def test_a_redirect_leads_nowhere_else(
    bubblewrap: BubblewrapBackend, site: Site, target: str
) -> None:
    outcome = await fetch(
        bubblewrap, site, f"http://api.test:{site.port}/to/{target.format(port=site.port)}"
    )
    assert "403" in message(outcome)
    assert len(site.heads) == 1


async def test_an_approved_name_that_is_private_is_refused_all_the_same(
    bubblewrap: BubblewrapBackend, site: Site, settings: Any
) -> None:
    settings.IZZY_PRIVATE_HOSTS = []
    outcome = await fetch(
        bubblewrap, site, f"http://localhost:{site.port}/", hosts=frozenset({f"localhost:{site.port}"})
    )
    assert "403" in message(outcome)
    assert site.heads == []


@pytest.mark.parametrize(
    "head",
    [
        "CONNECT api.test:{port}@127.0.0.1:{port} HTTP/1.1\r\n\r\n",
        "GET http://api.test:{port}@127.0.0.1:{port}/ HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: api.test:{port}\r\n\r\n",
        "GET ftp://api.test:{port}/ HTTP/1.1\r\n\r\n",
        "SSH-2.0-OpenSSH_9\r\n\r\n",
        "GET http://api.test:{port}/ HTTP/1.1\r\n broken : header\r\n\r\n",
        "CONNECT api.test:99999999 HTTP/1.1\r\n\r\n",
        "GET http://api.test:{port}/ HTTP/1.1\r\nX: a\nHost: evil.test\r\n\r\n",
        "GET http://[::1/ HTTP/1.1\r\n\r\n",
        "GET http://]/ HTTP/1.1\r\nContent-Length: ²\r\n\r\n",
    ],
)
async def test_malformed_requests_are_refused(
    bubblewrap: BubblewrapBackend, site: Site, head: str
) -> None:
    hosts = frozenset({f"api.test:{site.port}"})
    outcome = await run_main(bubblewrap, TUNNEL, {"head": head.format(port=site.port)}, hosts=hosts)
    assert (outcome.result or "").split(" ")[1] in {"400", "403"}
    assert site.heads == []


async def test_the_host_header_cannot_name_another_site(
    bubblewrap: BubblewrapBackend, site: Site
) -> None:
    head = f"GET http://api.test:{site.port}/ HTTP/1.1\r\nHost: evil.test\r\n\r\n"
    await run_main(bubblewrap, TUNNEL, {"head": head}, hosts=frozenset({f"api.test:{site.port}"}))
    assert "evil.test" not in site.heads[0]


async def test_raw_connections_and_names_lead_nowhere_with_hosts_approved(
    bubblewrap: BubblewrapBackend, site: Site
) -> None:
    main = f"""
import socket
def run(args):
    said = []
    for address in (('127.0.0.1', {site.port}), ('api.test', {site.port}), ('1.1.1.1', 53)):
        try: socket.create_connection(address, 1); said.append('reached')
        except OSError: said.append('no')
    return ' '.join(said)
"""
    outcome = await run_main(bubblewrap, main, hosts=frozenset({f"api.test:{site.port}"}))
    assert outcome.result == "no no no"


async def test_transfers_have_a_limit(bubblewrap: BubblewrapBackend, site: Site) -> None:
    url = f"http://api.test:{site.port}/large"
    outcome = await fetch(bubblewrap, site, url, limits=small(transfer_bytes=1_000_000))
    assert "IncompleteRead" in message(outcome)


async def test_an_unreachable_host_is_told_as_such(
    bubblewrap: BubblewrapBackend, site: Site, settings: Any
) -> None:
    settings.IZZY_PRIVATE_HOSTS = ["api.test:1=127.0.0.1"]
    outcome = await fetch(bubblewrap, site, "http://api.test:1/", hosts=frozenset({"api.test:1"}))
    assert "502" in message(outcome)
    assert "cannot be reached" in message(outcome)
    assert outcome.hosts_used == ()


@asynccontextmanager
async def building(backend: BubblewrapBackend) -> AsyncIterator[Any]:
    async with opened(backend, spec(purpose=Purpose.BUILD, limits=BUILD_LIMITS)) as sandbox:
        yield sandbox


async def test_a_build_is_told_how_to_ask_and_reaches_what_it_is_given(
    bubblewrap: BubblewrapBackend, site: Site
) -> None:
    url = f"http://api.test:{site.port}/"
    async with building(bubblewrap) as sandbox:
        code = f"import urllib.request as u\nu.urlopen({url!r}).read()"
        refused = await sandbox.run_code(code)
        assert refused.error is not None
        assert "request_network" in refused.error.message
        await sandbox.allow_hosts({f"api.test:{site.port}"})
        assert (await sandbox.run_code(code)).value == "b'it works'"


async def test_any_public_host_is_still_no_private_one(
    bubblewrap: BubblewrapBackend, site: Site
) -> None:
    async with building(bubblewrap) as sandbox:
        await sandbox.allow_hosts({"*"})
        for url in ("http://127.0.0.1/", "http://169.254.169.254/", f"http://127.0.0.1:{site.port}/"):
            done = await sandbox.run_code(f"import urllib.request as u\nu.urlopen({url!r})")
            assert done.error is not None
            assert "403" in done.error.message
    assert site.heads == []
