"""Requests that were let in: served by the SDK, for as long as their token holds and their client listens."""

import asyncio
import contextvars
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from contextlib import AbstractContextManager
from typing import Any

from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

from apps.accounts.credentials import credentials_watch, following
from apps.core.errors import IzzyError, NotAuthenticated

from .admission import MAX_BODY, PATH, Refused
from .callers import Caller
from .server import make_server

SESSIONS_PER_USER = 50
"""Of a user in a process; the one that was quiet for the longest makes room."""
IDLE_SECONDS = 1800.0
HEADER = b"mcp-session-id"
CALLER = "izzy.caller"


class Answer:
    """`send` of a request: `on_session` hears of the session that the answer names, and it can be ended in the middle."""

    def __init__(self, send: Any, on_session: Callable[[bytes], None]) -> None:
        self._send = send
        self._on_session = on_session
        self._started = self._complete = False

    async def __call__(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self._started = True
            session = dict(message["headers"]).get(HEADER)
            if session is not None and message["status"] < 400:
                self._on_session(session)
        elif not message.get("more_body", False):
            self._complete = True
        await self._send(message)

    async def end(self) -> None:
        """Raises NotAuthenticated where nothing was sent yet."""
        if not self._started:
            raise NotAuthenticated
        if not self._complete:
            await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class Sessions:
    """The MCP server of one event loop, and the sessions that clients hold with it."""

    def __init__(self) -> None:
        self._manager = StreamableHTTPSessionManager(
            make_server(_caller, self._ended),
            session_idle_timeout=IDLE_SECONDS,
            max_request_body_size=MAX_BODY,
        )
        self._open: OrderedDict[bytes, Caller] = OrderedDict()  # the one used last is last
        self._running: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()
        self._closing: set[asyncio.Task[None]] = set()

    async def serve(self, caller: Caller, scope: dict[str, Any], receive: Any, send: Any) -> None:
        """Answers one request. It ends, and what it began with it, when the client hangs up or the token is revoked."""
        if self._running is None:
            run = self._run()
            self._running = asyncio.get_running_loop().create_task(run, context=contextvars.Context())
        await self._ready.wait()
        named = dict(scope["headers"]).get(HEADER)
        if named is not None and named in self._open:
            self._open.move_to_end(named)
        scope = {**scope, "user": _principal(caller), CALLER: caller}
        try:
            with following(caller.user_id), _held(caller) as ended:
                answer = Answer(
                    send, lambda session: self._add(session, caller) if named is None else None
                )
                await self._until(ended, scope, receive, answer)
                if ended.is_set():
                    await answer.end()
        except IzzyError as error:
            raise Refused(error) from None
        finally:
            caller.gone.set()

    async def _run(self) -> None:
        async with self._manager.run():
            self._ready.set()
            await asyncio.Event().wait()

    async def _until(self, ended: asyncio.Event, scope: dict[str, Any], receive: Any, send: Any) -> None:
        serving = asyncio.ensure_future(self._manager.handle_request(scope, receive, send))
        ending = asyncio.ensure_future(ended.wait())
        try:
            await asyncio.wait({serving, ending}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            ending.cancel()
            if not serving.done():
                serving.cancel()
                await asyncio.wait({serving})
        if not serving.cancelled():
            serving.result()

    def _add(self, session: bytes, caller: Caller) -> None:
        self._open[session] = caller
        own = [key for key, each in self._open.items() if each.user_id == caller.user_id]
        for key in own[:-SESSIONS_PER_USER]:
            self.close(key)

    def close(self, session: bytes) -> None:
        """Ends a session: its id is unknown from then on."""
        caller = self._open.pop(session, None)
        if caller is not None:
            task = asyncio.create_task(self._delete(session, caller))
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def _delete(self, session: bytes, caller: Caller) -> None:
        """Asks the SDK to end it, as its client would."""
        headers = [(HEADER, session)]
        scope = {
            "type": "http",
            "method": "DELETE",
            "path": PATH,
            "query_string": b"",
            "headers": headers,
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: MutableMapping[str, Any]) -> None:
            pass

        await self._manager.handle_request({**scope, "user": _principal(caller)}, receive, send)

    def _ended(self, context: Any, revoked: bool) -> None:
        """A session is over, or has to end because its token was revoked."""
        session = context.request.headers.get(HEADER.decode(), "").encode()
        if revoked:
            self.close(session)
        else:
            self._open.pop(session, None)


def _held(caller: Caller) -> AbstractContextManager[asyncio.Event]:
    if caller.credentials is None:
        raise NotAuthenticated
    return credentials_watch().hold(caller.credentials)


async def _caller(context: Any) -> Caller:
    caller: Caller = context.request.scope[CALLER]
    return caller


def _principal(caller: Caller) -> AuthenticatedUser:
    """The owner of a session, for the SDK: a request with another token does not find it."""
    token = AccessToken(token="", client_id=caller.program, scopes=[], subject=str(caller.user_id))
    return AuthenticatedUser(token)
