"""/mcp: streamable HTTP in front of Django, the stateless protocol and the one with sessions side by side.

The SDK is loaded with the first request: it takes a second, and most processes of Izzy never need it.
"""

import asyncio
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from apps.core.db.pool import in_db
from apps.core.errors import TooLarge
from apps.core.http.siblings import ask, own_name
from apps.core.log_ids import log_ids_add

if TYPE_CHECKING:
    from .sessions import Sessions

PATH = "/mcp"

_sessions: "WeakKeyDictionary[asyncio.AbstractEventLoop, Sessions]" = WeakKeyDictionary()


class WithMCP:
    """An ASGI application that answers /mcp itself and leaves the rest to another."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["path"].rstrip("/") != PATH:
            await self.application(scope, receive, send)
            return
        log_ids_add(route="mcp")
        await asyncio.to_thread(warm_up)
        from .admission import MAX_BODY, Refused, admit, check_scope

        try:
            if other := process_of(scope):
                body = await _body(receive, MAX_BODY)
                if body is None or await ask(other, scope, body, receive, send):
                    return
                receive = _replayed(body, receive)
            scope, send = named_here(scope), naming(send)
            caller = await in_db(admit, scope)
            if scope["method"] == "POST" and not caller.may_write:
                body = await _body(receive, MAX_BODY)
                if body is None:
                    return
                await in_db(check_scope, caller, body)
                receive = _replayed(body, receive)
            await _of_this_loop().serve(caller, scope, receive, send)
        except TooLarge as error:
            await Refused(error).answer(send)
        except Refused as refused:
            await refused.answer(send)


def warm_up() -> None:
    """Loads what serving MCP needs."""
    from . import sessions  # noqa: F401


def _of_this_loop() -> "Sessions":
    from .sessions import Sessions

    return _sessions.setdefault(asyncio.get_running_loop(), Sessions())


async def _body(receive: Any, limit: int) -> bytes | None:
    """The body; None where the client has gone. Raises TooLarge."""
    parts, more = [], True
    while more:
        message = await receive()
        if message["type"] != "http.request":
            return None
        parts.append(message.get("body", b""))
        more = message.get("more_body", False)
        if sum(map(len, parts)) > limit:
            raise TooLarge(f"A request may have at most {limit:,} bytes.", limit=limit)
    return b"".join(parts)


def _replayed(body: bytes, receive: Any) -> Any:
    first = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Any:
        return first.pop() if first else await receive()

    return replay


HEADER = b"mcp-session-id"


def process_of(scope: dict[str, Any]) -> str:
    """The other process that the request's session lives in; "" where it is this one, or none is named."""
    session = dict(scope["headers"]).get(HEADER, b"").decode("latin-1")
    name = session.rpartition("-")[2] if "-" in session else ""
    return "" if name == own_name() else name


def named_here(scope: dict[str, Any]) -> dict[str, Any]:
    """The request with its session's id as this process knows it."""
    ending = f"-{own_name()}".encode()
    if not own_name():
        return scope
    headers = [
        (name, value.removesuffix(ending) if name == HEADER else value)
        for name, value in scope["headers"]
    ]
    return {**scope, "headers": headers}


def naming(send: Any) -> Any:
    """`send` of a request that adds this process to the session's id."""
    own = own_name()
    if not own:
        return send

    async def send_named(message: Any) -> None:
        if message["type"] == "http.response.start":
            headers = [
                (name, value + f"-{own}".encode() if name.lower() == HEADER else value)
                for name, value in message["headers"]
            ]
            message = {**message, "headers": headers}
        await send(message)

    return send_named
