"""Small ASGI applications around Django."""

import json
from collections.abc import Callable
from io import BytesIO
from typing import Any

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.core.handlers.asgi import ASGIHandler, ASGIRequest
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from apps.core.errors import TooLarge
from apps.core.http.middleware import https_target

Message = dict[str, Any]


class DjangoHandler(ASGIHandler):
    """Django, which answers a request in one go in the request's thread. Its own handler goes there and back for every
    middleware and for the view, a dozen times, which costs more than a short answer itself. Views that are coroutines
    would hold their thread; there are none, but for what they stream, which is sent from the event loop."""

    def load_middleware(self, is_async: bool = False) -> None:
        super().load_middleware(is_async=False)

    async def get_response_async(self, request: HttpRequest) -> HttpResponseBase:
        return await sync_to_async(self.get_response, thread_sensitive=True)(request)


class BodyLimit:
    """Answers 413 to a request whose body has more bytes than `limit` gives for its path, before Django reads any of it."""

    def __init__(self, application: Any, limit: Callable[[str], int]) -> None:
        self.application = application
        self.limit = limit

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        headers, limit = dict(scope["headers"]), self.limit(scope["path"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > limit:
            await self._refuse(send, limit)
            return
        if b"content-length" in headers and b"transfer-encoding" not in headers:
            await self.application(scope, receive, send)
            return
        messages = await self._read(receive, limit)
        if messages is None:
            await self._refuse(send, limit)
            return
        waiting = iter(messages)

        async def replay() -> Any:
            return next(waiting, None) or await receive()

        await self.application(scope, replay, send)

    async def _read(self, receive: Any, limit: int) -> list[Message] | None:
        """The messages of a body that does not tell its length; None where it is too long."""
        messages: list[Message] = []
        total, more = 0, True
        while more:
            message = await receive()
            messages.append(message)
            total += len(message.get("body", b""))
            more = message["type"] == "http.request" and message.get("more_body", False)
            if total > limit:
                return None
        return messages

    async def _refuse(self, send: Any, limit: int) -> None:
        error = TooLarge(f"A request may have at most {limit:,} bytes.", limit=limit)
        body = json.dumps(error.to_json()).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": error.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class HttpsAlone:
    """With an https IZZY_PUBLIC_URL, sends what comes over plain http to applications in front of Django there, as
    EdgeSecurityMiddleware does behind it. `beginnings` are those of their paths."""

    def __init__(self, application: Any, *beginnings: str) -> None:
        self.application = application
        self.beginnings = beginnings

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        ours = settings.TLS and scope["path"].startswith(self.beginnings)
        if not ours or not (target := _https_target(scope)):
            await self.application(scope, receive, send)
            return
        status = 301 if scope["method"] in {"GET", "HEAD"} else 308
        headers = [(b"location", target.encode()), (b"content-length", b"0")]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


def _https_target(scope: Message) -> str:
    request = ASGIRequest(scope, BytesIO())
    try:
        return https_target(request)
    except DisallowedHost:  # nobody's name: not this machine's own either
        return f"{settings.IZZY_PUBLIC_URL}{request.get_full_path()}"


class Lifespan:
    """Acknowledges start and end to the server."""

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
