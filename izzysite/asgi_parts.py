"""Small ASGI applications around Django."""

import json
from typing import Any

from channels.security.websocket import WebsocketDenier

from apps.core.errors import TooLarge

Message = dict[str, Any]


class BodyLimit:
    """Answers 413 to a request whose body is larger than `limit` bytes, before Django reads any of it."""

    def __init__(self, application: Any, limit: int) -> None:
        self.application = application
        self.limit = limit

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length[:20]) > self.limit:
            await self._refuse(send)
            return
        if b"content-length" in headers and b"transfer-encoding" not in headers:
            await self.application(scope, receive, send)
            return
        messages = await self._read(receive)
        if messages is None:
            await self._refuse(send)
            return
        await self.application(scope, _replay(messages, receive), send)

    async def _read(self, receive: Any) -> list[Message] | None:
        """The messages of a body that does not tell its length; None where it is too long."""
        messages: list[Message] = []
        total, more = 0, True
        while more:
            message = await receive()
            messages.append(message)
            total += len(message.get("body", b""))
            more = message["type"] == "http.request" and message.get("more_body", False)
            if total > self.limit:
                return None
        return messages

    async def _refuse(self, send: Any) -> None:
        error = TooLarge(f"A request may have at most {self.limit:,} bytes.", limit=self.limit)
        body = json.dumps(error.to_json()).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": error.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


class HeadWithoutBody:
    """Answers to HEAD leave without their body. Django leaves that to the server, and daphne drops the first part of a
    body only: what follows would be read as the next answer of the connection."""

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["method"] != "HEAD":
            await self.application(scope, receive, send)
            return

        async def send_without_body(message: Message) -> None:
            await send({**message, "body": b""} if message["type"] == "http.response.body" else message)

        await self.application(scope, receive, send_without_body)


def _replay(messages: list[Message], receive: Any) -> Any:
    waiting = iter(messages)

    async def next_message() -> Any:
        for message in waiting:
            return message
        return await receive()

    return next_message


class RefuseSocket:
    """Websockets at addresses where there is none: refused in the handshake."""

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        await WebsocketDenier()(scope, receive, send)


class Lifespan:
    """Acknowledges start and end to servers that announce them (uvicorn); there is nothing to do."""

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
