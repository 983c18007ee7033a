"""The model client over the real SDK. The only module that imports `anthropic`.

Importing that package takes about two seconds, so it is imported at first use, in a thread; `warm_up` does it ahead.
"""

import asyncio
import importlib
import json
import random
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from django.conf import settings

from apps.agent.model import failures
from apps.agent.model.answer import Answer, merged
from apps.agent.model.client import (
    OFFLINE,
    Endpoint,
    ModelError,
    ModelEvent,
    ModelRequest,
    ModelResponse,
    Retry,
    TextChunk,
    Usage,
    current_endpoint,
    modelcall_record,
    priced,
)
from apps.agent.model.messages import sendable, valid_messages
from apps.agent.models import ModelCall
from apps.agent.tools.base import find_tool
from apps.agent.tools.results import Scrubber
from apps.core.db.pool import in_db, through_outage
from apps.core.traces import Span, Value, span_begin

MARKER = {"type": "ephemeral"}
IGNORED = {None, "ping"}


def parameters(request: ModelRequest, endpoint: Endpoint) -> dict[str, Any]:
    """Of the request; toward Anthropic's own endpoint alone with cache markers and typed tools.

    The marker on the last system block (or tool) keeps what never changes; the top-level one lets the endpoint mark
    the last block of the conversation, so that no message changes from one request to the next.
    """
    system = (
        [{"type": "text", "text": request.system}] if isinstance(request.system, str) else request.system
    )
    ours = request.ours if endpoint.searches_the_web else request.ours | {"web_search"}
    tools = request.tools
    is_anthropic = endpoint.kind == ModelCall.Endpoint.ANTHROPIC
    if is_anthropic:
        known = [(tool, None if tool["name"] in ours else find_tool(tool["name"])) for tool in tools]
        tools = [
            {"type": found.typed, "name": found.name, **found.typed_fields}
            if found and found.typed
            else tool
            for tool, found in known
        ]
    searches = any(str(tool.get("type", "")).startswith("web_search") for tool in tools)
    fixed: dict[str, Any] = {
        "tools": [*tools],
        "system": [block for block in system if block["text"].strip()],
    }
    fixed = {name: value for name, value in fixed.items() if value}
    if request.tool_choice:
        fixed["tool_choice"] = request.tool_choice
    if is_anthropic:
        last = fixed.get("system") or fixed.get("tools")
        if last:
            last[-1] = last[-1] | {"cache_control": MARKER}
        fixed["cache_control"] = MARKER
    messages = sendable(valid_messages(request.messages), known=searches)
    return fixed | {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "messages": messages,
        "stream": True,
    }


if TYPE_CHECKING:
    import anthropic

PATIENCE = 20.0
"""Seconds. An endpoint that asks to wait longer before a retry gets none: the user gets the error instead."""

MAX_RETRIES = 2
CONNECT_SECONDS = 10.0
REST_SECONDS = 0.25
"""So long the end of the body is waited for after an answer is complete: a connection that was read to its end is used again."""


def warm_up() -> None:
    """Imports what the first message would wait for; run in a thread of the web process. Without a model no message needs
    the SDK, which takes longer than all the rest."""
    names = ["apps.agent.turn.loop", "apps.agent.offline.responder"]
    for name in names if current_endpoint().is_offline else ["anthropic", *names]:
        importlib.import_module(name)


@cache
def default_client() -> "SdkModelClient":
    """The client that everything shares."""
    return SdkModelClient()


@dataclass
class SdkModelClient:
    """`ModelClient` over the SDK, against whatever endpoint is set at the time of the call.

    Connections belong to an event loop, so there is one SDK client for each loop and endpoint.
    """

    _clients: WeakKeyDictionary[
        asyncio.AbstractEventLoop, dict[Endpoint, "anthropic.AsyncAnthropic"]
    ] = field(default_factory=WeakKeyDictionary)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `ModelClient.stream`. A call that is cancelled or fails has its row too."""
        endpoint = await in_db(current_endpoint) if request.endpoint is None else request.endpoint
        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        if endpoint not in clients:
            clients.setdefault(endpoint, await asyncio.to_thread(_new_client, endpoint))
        row = ModelCall(
            user_id=request.user_id,
            conversation_id=request.conversation_id,
            turn_id=request.turn_id,
            round=request.round,
            purpose=request.purpose,
            model=OFFLINE if endpoint.is_offline else request.model[:128],
            endpoint=endpoint.kind,
        )
        span = span_begin(f"chat {row.model}", kind="CLIENT")
        call = _Call(request, endpoint, clients[endpoint], row, Answer(settings.IZZY_ANSWER_CHARS))
        try:
            async with aclosing(merged(call.events())) as events:
                async for event in events:
                    yield event
        except ModelError as error:
            row.error_code = error.code
            raise
        except (asyncio.CancelledError, GeneratorExit):
            row.error_code = "" if call.answer.complete else ModelCall.CANCELLED
            raise
        finally:
            row.stop_reason = call.answer.stop_reason[:48]
            try:
                await _recorded(row, call.usage())
            finally:
                if span is not None:
                    _span_end(span, row, request.max_tokens, call.answer.model)


@dataclass
class _Call:
    """One request under way."""

    request: ModelRequest
    endpoint: Endpoint
    client: "anthropic.AsyncAnthropic"
    row: ModelCall
    answer: Answer
    may_repeat: bool = True  # until a stream has begun, or the endpoint has said that it is of no use

    async def events(self) -> AsyncGenerator[ModelEvent, None]:
        """The stream, asked for again where the endpoint fails in passing: here and not in the SDK, which says nothing
        while it waits."""
        started = time.monotonic()
        try:
            for attempt in range(MAX_RETRIES + 1):
                try:
                    async with aclosing(self._attempt()) as chunks:
                        async for chunk in chunks:
                            if self.row.first_token_ms is None:
                                self.row.first_token_ms = round((time.monotonic() - started) * 1000)
                            yield chunk
                    break
                except ModelError as error:
                    if self.answer.complete:  # whatever became of the connection then
                        break
                    seconds = self._pause(error, attempt)
                    if seconds is None:
                        raise
                    again = Retry(error.code, failures.PASSING[error.code], seconds)
                yield again
                await asyncio.sleep(again.seconds)
        finally:
            self.row.latency_ms = round((time.monotonic() - started) * 1000)
        if not self.answer.started:
            raise failures.bad_response(self.endpoint.server)
        if not self.answer.complete:
            raise failures.stream_cut()
        yield ModelResponse(
            self.answer.blocks(), self.answer.stop_reason, self.usage(), self.answer.model
        )

    def usage(self) -> Usage:
        """The endpoint's count so far; zero offline, where no model is called."""
        if self.endpoint.is_offline:
            return Usage()
        return priced(self.answer.tokens, self.answer.model, self.request.model)

    def _pause(self, error: ModelError, attempt: int) -> float | None:
        """Seconds until the next attempt: as many as the endpoint asks for, else half a second doubled each time and
        spread a little; None where there is none."""
        asked = error.retry_after or 0
        if (
            error.code not in failures.PASSING
            or not self.may_repeat
            or attempt == MAX_RETRIES
            or asked > PATIENCE
        ):
            return None
        return asked if asked > 0 else 0.5 * 2**attempt * random.uniform(0.75, 1)

    async def _attempt(self) -> AsyncGenerator[ModelEvent, None]:
        import anthropic as sdk
        import httpx2

        try:
            async with await self._begin() as stream:
                self.may_repeat = False
                self.row.request_id = stream.response.headers.get("request-id", "")[:128]
                # Not the SDK's own objects: making those takes longer than all else that is done for a piece of text.
                events = stream.raw_events(stream.response)
                async for event in events:
                    if event.event == "error":
                        raise self._refused(event.data, stream.response.headers)
                    if event.event in IGNORED or not event.data:
                        continue
                    try:
                        text = self.answer.take(event.json())
                    except (AttributeError, KeyError, TypeError) as error:
                        # Whatever the server sent, also with parts missing.
                        raise failures.bad_response(self.endpoint.server) from error
                    if text:
                        yield TextChunk(text)
                    while self.answer.server:
                        yield self.answer.server.pop(0)
                    if self.answer.complete:
                        break
                if not self.answer.full:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(REST_SECONDS):
                            async for _ in events:
                                pass
        except (sdk.APITimeoutError, httpx2.TimeoutException) as error:
            raise ModelError(*failures.TIMED_OUT) from error
        except sdk.APIStatusError as error:
            raise self._failure(error.status_code, error.response.headers, error.body) from error
        except (sdk.APIConnectionError, httpx2.TransportError) as error:
            broken = failures.stream_cut() if self.answer.started else None
            raise broken or failures.unreachable(self.endpoint.server) from error
        except UnicodeEncodeError as error:
            raise ModelError(*failures.BAD_KEY) from error
        except (sdk.APIError, ValueError) as error:
            raise failures.bad_response(self.endpoint.server) from error

    async def _begin(self) -> "anthropic.AsyncStream[Any]":
        """As `messages.create`, but with a body that is JSON already, its keys in order at every level: one that is
        not the SDK copies value by value, which takes longer than all else that a request does."""
        import anthropic as sdk

        body = json.dumps(
            parameters(self.request, self.endpoint),
            ensure_ascii=False,
            allow_nan=False,
            sort_keys=True,
            separators=(",", ":"),
        )
        return await self.client.post(
            "/v1/messages",
            cast_to=sdk.types.Message,
            content=body.encode(),
            stream=True,
            stream_cls=sdk.AsyncStream[Any],
        )

    def _refused(self, data: str, headers: Mapping[str, str]) -> ModelError:
        """The failure that an event of a stream tells, of which the status was 200."""
        try:
            body = json.loads(data)
        except ValueError:
            body = None
        return self._failure(200, headers, body)

    def _failure(self, status: int, headers: Mapping[str, str], body: object) -> ModelError:
        self.may_repeat &= headers.get("x-should-retry") != "false"
        inner = body.get("error") if isinstance(body, dict) else None
        message, kind = "", ""
        if isinstance(inner, dict):
            message, kind = str(inner.get("message", "")), str(inner.get("type", ""))
        return failures.status_error(
            failures.STATUS_OF_TYPE.get(kind, status),
            Scrubber([self.endpoint.api_key]).text(message),
            model=self.request.model,
            server=self.endpoint.server,
            retry_after=failures.retry_after(headers),
        )


async def _recorded(row: ModelCall, usage: Usage) -> None:
    """Stores the row. A database that is away as the answer ends does not cost the answer."""
    tries = count()
    await through_outage(lambda: in_db(modelcall_record, row, usage, again=next(tries) > 0))


def _span_end(span: Span, row: ModelCall, max_tokens: int, answered_by: str) -> None:
    """Ends the span of a call whose row is stored, by OpenTelemetry's names for generative AI; never with what was said.
    `answered_by` is the model that the endpoint names."""
    read, written = row.cache_read_tokens, row.cache_write_tokens
    first = row.first_token_ms
    values: dict[str, Value | None] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": row.endpoint,
        "gen_ai.request.model": row.model,
        "gen_ai.request.max_tokens": max_tokens,
        "gen_ai.conversation.id": str(row.conversation_id) if row.conversation_id else None,
        "izzy.purpose": row.purpose,
        "gen_ai.response.model": answered_by or None,
        "gen_ai.response.finish_reasons": [row.stop_reason] if row.stop_reason else None,
        "gen_ai.usage.input_tokens": row.input_tokens + read + written,
        "gen_ai.usage.output_tokens": row.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": read,
        "gen_ai.usage.cache_creation.input_tokens": written,
        "gen_ai.response.time_to_first_chunk": None if first is None else first / 1000,
    }
    for name, value in values.items():
        span.set(name, value)
    if row.error_code:
        span.fail(row.error_code)
    span.end()


def _new_client(endpoint: Endpoint) -> "anthropic.AsyncAnthropic":
    import anthropic
    import httpx2

    from apps.agent.model.network import http_client
    from apps.agent.offline.responder import OfflineTransport

    timeout = httpx2.Timeout(settings.IZZY_MODEL_TIMEOUT, connect=CONNECT_SECONDS)
    if endpoint.is_offline:
        http = httpx2.AsyncClient(transport=OfflineTransport(), timeout=timeout)
        return anthropic.AsyncAnthropic(
            api_key="offline", base_url="http://offline.invalid", http_client=http, max_retries=0
        )
    return anthropic.AsyncAnthropic(
        api_key=endpoint.api_key,
        base_url=endpoint.base_url,
        http_client=http_client(timeout),
        max_retries=0,
    )
