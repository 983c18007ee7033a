"""The ASGI application of `/v1/`: a request goes in with memory beside it, and the answer comes back as it is."""

import asyncio
import contextvars
import logging
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote
from uuid import UUID

import httpx

from apps.core.db.pool import in_db
from apps.core.db.writing import writer, writing_for
from apps.core.http.edge import ABORT, MESSAGES_LIMIT, MESSAGES_PREFIX
from apps.core.log_ids import log_ids_add
from apps.gateway.proxy.answer import Answer
from apps.gateway.proxy.capture import exchange_capture
from apps.gateway.proxy.credentials import NOT_ANSWERED, credentials_of
from apps.gateway.proxy.errors import ProxyError
from apps.gateway.proxy.ledger import spending_record
from apps.gateway.proxy.memory import Plan, new_block, turn_store
from apps.gateway.proxy.requests import Incoming, Prepared, prepare
from apps.gateway.proxy.upstream import client, path_check, request_of
from apps.gateway.surfacing import Block
from apps.search.index.cache import index_ready

logger = logging.getLogger(__name__)
MEMORY_SECONDS = 0.150
"""Looking for notes may take so long; after that the request goes on without."""
STORE_SECONDS = 0.050
"""A turn is stored so soon, whether the upstream answers or not: the request may be sent again."""
OUT_SECONDS = 0.002
"""An answer's first byte is on its way to the client by then: another thread that begins before holds it up."""

_afterwards: dict[UUID, dict[asyncio.Task[None], UUID | None]] = {}
"""By user, what is still being stored of their answers, and in which session: who asks in another one is to find it."""


class UpstreamCut(Exception):
    """The upstream broke off its answer: the client is to see it broken off too."""


class MessagesProxy:
    """Answers what begins with /v1/, and leaves the rest to `application`."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if not scope["path"].startswith(MESSAGES_PREFIX):
            await self.application(scope, receive, send)
            return
        log_ids_add(route="v1/")
        exchange = _Exchange(scope, receive, send)
        try:
            incoming = await exchange.read()
        except ProxyError as error:
            await exchange.refuse(error)
            return
        if incoming is not None:
            await exchange.run(incoming)


@dataclass(slots=True)
class _Exchange:
    """One request and its answer."""

    scope: dict[str, Any]
    receive: Any
    send: Any
    started: bool = False
    begun: float = field(default_factory=time.monotonic)
    answers: asyncio.Event = field(
        default_factory=asyncio.Event
    )  # is set when the first byte has gone to the client

    async def read(self) -> Incoming | None:
        """The request; None where the client has gone. ProxyError for what is refused before anything is looked up."""
        scope = self.scope
        path, query = scope["path"], scope.get("query_string", b"")
        path_check(path, query)
        credentials = credentials_of(scope["headers"])
        body = bytearray()
        more = True
        while more:
            message = await self.receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MESSAGES_LIMIT:
                text = f"A request may have at most {MESSAGES_LIMIT:,} bytes."
                raise ProxyError(413, "request_too_large", text)
        raw = scope.get("raw_path") or quote(path).encode()
        headers = dict(reversed(scope["headers"]))
        return Incoming(
            scope["method"], path, raw.split(b"?")[0], query, headers, credentials, bytes(body)
        )

    async def run(self, incoming: Incoming) -> None:
        """Answers, unless the client goes away first: then nothing goes on, upstream neither."""
        answering = asyncio.create_task(self._answer(incoming))
        leaving = asyncio.create_task(self._left())
        try:
            await asyncio.wait({answering, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            answering.cancel()
            await asyncio.wait({answering, leaving})
        if not answering.cancelled() and (error := answering.exception()) is not None:
            raise error

    async def refuse(self, error: ProxyError) -> None:
        """Answers with an error of our own."""
        body = error.body()
        given = {"content-type": "application/json", "content-length": str(len(body)), **error.headers}
        headers = [(name.encode(), value.encode()) for name, value in given.items()]
        await self._start(error.status, headers)
        await self.send({"type": "http.response.body", "body": body})

    async def _left(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _answer(self, incoming: Incoming) -> None:
        try:
            prepared, block = await _looked(incoming)
            body = incoming.body
            plan = prepared.plan
            storing = None
            if plan is not None:
                texts = dict(plan.stored)
                if block is not None and block.text and plan.place not in texts:
                    texts[plan.place] = block.text
                body = plan.body.with_blocks(texts) if texts else body
                if not prepared.counts:
                    session_id = plan.session.pk if plan.session else None
                    work = _stored(plan, block, after=self.answers)
                    storing = _later(prepared.token.user_id, work, session_id=session_id)
            await self._relay(incoming.method, prepared, body, storing)
        except ProxyError as error:
            await self.refuse(error)
        except UpstreamCut:
            if ABORT not in (self.scope.get("extensions") or {}):
                raise  # other servers close the connection then
            await self.send({"type": ABORT})
        except Exception:
            if self.started:
                raise
            logger.exception("a request to the proxy failed")
            await self.refuse(ProxyError(500, "api_error", "Something went wrong in Izzy."))

    async def _relay(
        self, method: str, prepared: Prepared, body: bytes, storing: "asyncio.Task[None] | None"
    ) -> None:
        """Passes the request on and the answer back, piece by piece, and reads along."""
        answer: Answer | None = None
        first_byte: int | None = None
        way = _Way()
        try:
            async with _asked(request_of(prepared.upstream, method, body), way) as response:
                if prepared.upstream.spends or (prepared.plan and not prepared.counts):
                    answer = Answer(body, response.status_code, response.headers)
                await self._start(response.status_code, _answered(response))
                async for data in response.aiter_raw():
                    if first_byte is None:
                        first_byte = self._elapsed()
                        asyncio.get_running_loop().call_later(OUT_SECONDS, self.answers.set)
                    await self.send({"type": "http.response.body", "body": data, "more_body": True})
                    if answer is not None:
                        answer.feed(data)
            self.answers.set()
            if storing is not None:
                await asyncio.wait({storing})  # who goes on from this answer finds it stored
            await self.send({"type": "http.response.body", "body": b""})
        finally:
            self.answers.set()
            if answer is None and prepared.upstream.spends and way.is_sent:
                answer = Answer(body)  # the endpoint works on it all the same
                answer.model = prepared.model
            if answer is not None:
                answer.end()
                work = _finished(prepared, answer, storing, self._elapsed(), first_byte)
                session = prepared.plan.session if prepared.plan else None
                _later(prepared.token.user_id, work, session_id=session.pk if session else None)

    async def _start(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self.started = True
        await self.send({"type": "http.response.start", "status": status, "headers": headers})

    def _elapsed(self) -> int:
        return round((time.monotonic() - self.begun) * 1000)


@dataclass(slots=True)
class _Way:
    """How far a request has come, as its connection tells: over one that was made for it, wholly to the upstream."""

    is_new: bool = False
    is_sent: bool = False

    async def __call__(self, event: str, _: dict[str, Any]) -> None:
        if event.startswith("connection.connect_tcp"):
            self.is_new, self.is_sent = True, False
        elif event.endswith("send_request_body.complete"):
            self.is_sent = True


@asynccontextmanager
async def _asked(request: httpx.Request, way: _Way) -> AsyncIterator[httpx.Response]:
    """The upstream's answer. ProxyError (502) where there is none, UpstreamCut where it breaks off."""
    response = None
    try:
        response = await _sent(request, way)
        yield response
    except (httpx.TransportError, httpx.InvalidURL) as error:
        name = type(error).__name__  # its text may quote a header
        if not isinstance(error, httpx.ReadTimeout):
            way.is_sent = False  # whoever hung up works on it no longer
        if response is not None:
            raise UpstreamCut(name) from None
        logger.warning("the Messages proxy's upstream does not answer: %s", name)
        raise ProxyError(502, "api_error", f"Izzy cannot reach the model's server ({name}).") from None
    finally:
        if response is not None:
            await response.aclose()


async def _sent(request: httpx.Request, way: _Way) -> httpx.Response:
    """The upstream's answer. A connection kept from an earlier request may be closed for having been idle just as it is used again:
    then the request goes over another, once."""
    request.extensions["trace"] = way
    try:
        return await client().send(request, stream=True)
    except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
        if way.is_new:
            raise
    way.is_sent = False
    return await client().send(request, stream=True)


def _answered(response: httpx.Response) -> list[tuple[bytes, bytes]]:
    named = {name.strip().lower().encode() for name in response.headers.get("connection", "").split(",")}
    pairs = ((name.lower(), value) for name, value in response.headers.raw)
    return [(name, value) for name, value in pairs if name not in NOT_ANSWERED | named]


@dataclass(slots=True)
class _Look:
    """A request while its block is looked for, in another thread; `begun` is when that began."""

    prepared: Prepared | None = None
    begun: float = 0.0
    waits: bool = False  # for what was said in the user's other sessions


async def _looked(incoming: Incoming) -> tuple[Prepared, Block | None]:
    """The request, and the block to add; None where nothing was looked for, or not in time."""
    look = _Look()
    loop = asyncio.get_running_loop()
    task = asyncio.create_task(in_db(_look_up, look, incoming, loop))
    try:
        # The thread wakes nobody when it is done with the first of both: each time costs the request a part of a millisecond.
        while not task.done():
            left = look.begun + MEMORY_SECONDS - time.monotonic() if look.prepared else MEMORY_SECONDS
            if left <= 0:
                break
            await asyncio.wait({task}, timeout=left)
    finally:
        task.cancel()
    if not task.done() and look.prepared is not None:
        logger.warning("memory took too long: a request passes without a new block")
        return look.prepared, None
    prepared, block = await task
    if look.waits and prepared.plan is not None:
        block = await _block(prepared.plan)
    return prepared, block


def _look_up(
    look: _Look, incoming: Incoming, loop: asyncio.AbstractEventLoop
) -> tuple[Prepared, Block | None]:
    ready = prepare(incoming)
    look.begun, look.prepared = time.monotonic(), ready
    plan = ready.plan
    if plan is None or not plan.wants_block:
        return ready, None
    if _others(plan, loop):
        look.waits = True
        return ready, None
    with writing_for(ready.token.user_id):
        try:
            return ready, new_block(plan)
        except Exception:
            logger.exception("a request passes without a new block of memory")
            return ready, None


async def _block(plan: Plan) -> Block | None:
    """The same block, once what was said in the user's other sessions is stored, or after a moment."""
    try:
        if others := _others(plan, asyncio.get_running_loop()):
            await asyncio.wait(others, timeout=MEMORY_SECONDS)
        with writing_for(plan.token.user_id):
            async with asyncio.timeout(MEMORY_SECONDS):
                return await in_db(new_block, plan)
    except TimeoutError:
        logger.warning("memory took too long: a request passes without a new block")
    except Exception:
        logger.exception("a request passes without a new block of memory")
    return None


def _others(plan: Plan, loop: asyncio.AbstractEventLoop) -> "set[asyncio.Task[None]]":
    """Tasks that still store the user's other sessions."""
    own = plan.session.pk if plan.session else None
    tasks = list(_afterwards.get(plan.token.user_id, {}).items())
    return {
        task
        for task, session_id in tasks
        if task.get_loop() is loop and (own is None or session_id != own)
    }


async def _stored(plan: Plan, block: Block | None, *, after: asyncio.Event) -> None:
    """Stores the turn, when the answer has begun or has been waited for a moment: not in its way."""
    try:
        async with asyncio.timeout(STORE_SECONDS):
            await after.wait()
    except TimeoutError:
        pass
    try:
        await in_db(turn_store, plan, block)
    except Exception:
        logger.exception("a turn of the proxy was not stored")


async def _finished(
    prepared: Prepared,
    answer: Answer,
    storing: "asyncio.Task[None] | None",
    elapsed: int,
    first_byte: int | None,
) -> None:
    """Stores what an answer cost and what was said; an answer never fails by it."""
    if storing is not None:
        await asyncio.wait({storing})
    try:
        await in_db(_keep, prepared, answer, elapsed, first_byte)
    except Exception:
        logger.exception("an answer of the proxy was not stored")


def _keep(prepared: Prepared, answer: Answer, elapsed: int, first_byte: int | None) -> None:
    if prepared.upstream.spends:
        spending_record(
            token=prepared.token,
            answer=answer,
            endpoint=prepared.upstream.kind,
            model=prepared.model,
            latency_ms=elapsed,
            first_byte_ms=first_byte,
        )
    if prepared.plan is not None:
        exchange_capture(prepared.plan, answer)
        index_ready(prepared.token.user_id)  # of what was said; the next request is to find it so


def _later(
    user_id: UUID, work: Coroutine[Any, Any, None], *, session_id: UUID | None
) -> "asyncio.Task[None]":
    """Runs it beside the request, which may end before."""
    context = contextvars.Context()
    context.run(writer.set, user_id)
    task = asyncio.create_task(work, context=context)
    tasks = _afterwards.setdefault(user_id, {})
    tasks[task] = session_id

    def done(task: "asyncio.Task[None]") -> None:
        tasks.pop(task, None)
        if not tasks and _afterwards.get(user_id) is tasks:
            del _afterwards[user_id]

    task.add_done_callback(done)
    return task
