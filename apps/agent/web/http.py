"""HTTP that connects to checked addresses alone, and decodes no more than was asked for (zip bombs)."""

import ssl
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from functools import lru_cache
from typing import Any

import httpcore
import httpx

from apps.agent.tools.base import ToolFailure
from apps.core.http.addresses import PrivateHost, resolve_public

USER_AGENT = "Izzy/0.1 (self-hosted personal assistant; fetches what its user asks for)"


class CheckedBackend(httpcore.AsyncNetworkBackend):
    """Opens TCP connections to the address that was checked, so that nothing resolves the name a second time.

    TLS still names, and verifies, the host. `also` are hosts allowed beside those of the settings.
    """

    def __init__(self, also: Iterable[PrivateHost] = ()) -> None:
        self._also = tuple(also)
        self._network: httpcore.AsyncNetworkBackend = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Tries the addresses in turn. Raises `AddressRefused`, `NameNotFound`, httpcore's own errors."""
        *first, last = await resolve_public(host, port, also=self._also)
        for place in first:
            try:
                return await self._network.connect_tcp(place.address, port, timeout, local_address)
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                continue
        return await self._network.connect_tcp(last.address, port, timeout, local_address)

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109  httpcore's signature
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise httpcore.UnsupportedProtocol("no sockets of this machine")

    async def sleep(self, seconds: float) -> None:
        await self._network.sleep(seconds)


class CheckedTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport over `CheckedBackend`. No proxies: they would resolve names themselves."""

    def __init__(self, also: Iterable[PrivateHost] = ()) -> None:
        super().__init__(verify=_tls(), trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=_tls(), network_backend=CheckedBackend(also), max_connections=4, http1=True
        )


def checked_client(*, seconds: float, also: Iterable[PrivateHost] = ()) -> httpx.AsyncClient:
    """A client for one request or a few: no redirects followed, nothing taken from the environment.

    `seconds` bounds each step (connecting, waiting for bytes), not the whole: put `asyncio.timeout` around that.
    """
    return httpx.AsyncClient(
        transport=CheckedTransport(also),
        timeout=httpx.Timeout(seconds),
        follow_redirects=False,
        trust_env=False,
        headers={"User-Agent": USER_AGENT},
    )


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    """Made once: reading the certificates takes longer than many a page."""
    return httpx.create_ssl_context(trust_env=False)


ACCEPTED = "gzip, deflate"
STEP = 65_536

_WINDOW = {"gzip": 16 + zlib.MAX_WBITS, "x-gzip": 16 + zlib.MAX_WBITS, "deflate": zlib.MAX_WBITS}


async def decoded(raw: AsyncIterator[bytes], encoding: str) -> AsyncIterator[bytes]:
    """The pieces of a body, decompressed, each at most 64 KB; stop reading and nothing more is decompressed.

    `encoding` is the Content-Encoding header. Raises `ToolFailure` for one that was not asked for, and for broken data.
    """
    names = [name.strip().lower() for name in encoding.split(",") if name.strip()]
    names = [name for name in names if name != "identity"]
    if not names:
        async for piece in raw:
            yield piece
        return
    if len(names) > 1 or names[0] not in _WINDOW:
        raise ToolFailure(
            "The page is compressed in a way that cannot be read here. Try another page on the subject."
        )
    inflate = None
    async for piece in raw:
        if not piece:
            continue
        inflate = inflate or zlib.decompressobj(_window(names[0], piece))
        for out in _steps(inflate, piece):
            yield out
        if inflate.eof:
            return


def _steps(inflate: "zlib._Decompress", piece: bytes) -> Iterator[bytes]:
    while True:
        try:
            out = inflate.decompress(piece, STEP)
        except zlib.error as error:
            raise ToolFailure("The page arrived damaged. Try again, or another page.") from error
        piece = inflate.unconsumed_tail
        if out:
            yield out
        if inflate.eof or not (out or piece):
            return


def _window(name: str, first: bytes) -> int:
    """Some servers send `deflate` without its zlib header (RFC 9110, 8.4.1.2, names the habit)."""
    bare = name == "deflate" and (
        first[0] & 0x0F != 8 or (len(first) > 1 and (first[0] << 8 | first[1]) % 31)
    )
    return -zlib.MAX_WBITS if bare else _WINDOW[name]
