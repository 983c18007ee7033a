"""Web processes that share a port ask each other: each listens on a socket of its own in the data directory too, for what it alone
can answer, such as a session that lives in it."""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from apps.core.http.edge import ABORT
from apps.core.log_ids import log_ids_add

SILENCE_SECONDS = 3600.0
OF_A_CONNECTION = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"upgrade"})
_NAME = re.compile(r"[1-9][0-9]{0,9}")

_folder: list[
    int
] = []  # the data directory, opened: paths of sockets may have 100 characters, through this they have fewer
_clients: "WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, Any]]" = WeakKeyDictionary()


def join(data: Path) -> str:
    """Makes this process one of those that can be asked; the address to listen at. Linux alone."""
    for left in data.glob("web-*.sock"):
        if not Path(f"/proc/{left.stem.removeprefix('web-')}").exists() or left == _file(data):
            left.unlink(missing_ok=True)
    _folder[:] = [os.open(data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)]
    return _address(own_name())


def leave() -> None:
    """Takes the address away where there is one: nobody listens there any more."""
    if _folder:
        Path(_address(own_name())).unlink(missing_ok=True)


def own_name() -> str:
    """This process's name among the others; "" where it has its port for itself."""
    return str(os.getpid()) if _folder else ""


async def ask(
    name: str,
    scope: dict[str, Any],
    body: bytes,
    receive: Callable[[], Awaitable[Any]],
    send: Callable[[Any], Awaitable[None]],
) -> bool:
    """Has the process of that name answer a request whose body was read; it is broken off where the client or that process goes.

    False where there is no such process or it does not answer: nothing was sent then.
    """
    if not _folder or not _NAME.fullmatch(name):
        return False
    asking = asyncio.ensure_future(_relay(name, scope, body, send))
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({asking, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        leaving.cancel()
        if not asking.done():
            asking.cancel()
            await asyncio.wait({asking})
    return asking.cancelled() or asking.result()


async def _relay(
    name: str, scope: dict[str, Any], body: bytes, send: Callable[[Any], Awaitable[None]]
) -> bool:
    import httpx

    path = scope.get("raw_path") or scope["path"].encode()
    target = path + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    url = httpx.URL("http://sibling").copy_with(raw_path=target)
    headers = [pair for pair in scope["headers"] if pair[0] not in OF_A_CONNECTION]
    request = httpx.Request(scope["method"], url, headers=headers, content=body or None)
    started = False
    try:
        answer = await _client(name).send(request, stream=True)
        try:
            headers = [pair for pair in answer.headers.raw if pair[0].lower() not in OF_A_CONNECTION]
            started = True
            log_ids_add(route="")
            start = {"type": "http.response.start", "status": answer.status_code, "headers": headers}
            await send(start)
            async for piece in answer.aiter_raw():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            await answer.aclose()
    except httpx.TransportError:
        if started:
            await send({"type": ABORT})
        return started
    await send({"type": "http.response.body", "body": b"", "more_body": False})
    return True


async def _left(receive: Callable[[], Awaitable[Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _client(name: str) -> Any:
    """The connections to a process. They keep nothing open: what it answers with may be a stream without an end."""
    import httpx

    known = _clients.setdefault(asyncio.get_running_loop(), {})
    if name not in known:
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        way = httpx.AsyncHTTPTransport(uds=_address(name), limits=limits)
        known[name] = httpx.AsyncClient(transport=way, timeout=SILENCE_SECONDS, trust_env=False)
    return known[name]


def _address(name: str) -> str:
    return f"/proc/self/fd/{_folder[0]}/web-{name}.sock"


def _file(data: Path) -> Path:
    return data / f"web-{os.getpid()}.sock"
