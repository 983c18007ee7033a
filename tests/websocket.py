"""A websocket's client of an ASGI application in this process. That of channels comes with a web server that Izzy does not use."""

import json
from collections.abc import Sequence
from typing import Any

from asgiref.testing import ApplicationCommunicator


class WebsocketCommunicator(ApplicationCommunicator):
    """Times are in seconds. A frame that does not come in time raises TimeoutError."""

    def __init__(self, application: Any, path: str, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self.scope: dict[str, Any] = {
            "type": "websocket",
            "path": path,
            "query_string": b"",
            "headers": list(headers),
            "subprotocols": [],
        }
        super().__init__(application, self.scope)  # type: ignore[no-untyped-call]

    async def send_input(self, message: dict[str, Any]) -> None:
        await super().send_input(message)  # type: ignore[no-untyped-call]

    async def receive_output(self, timeout: float = 1) -> Any:  # noqa: ASYNC109
        return await super().receive_output(timeout)  # type: ignore[no-untyped-call]

    async def connect(self, timeout: float = 1) -> tuple[bool, int | None]:  # noqa: ASYNC109
        """Whether it was let in, and where it was not, the code with which it was closed."""
        await self.send_input({"type": "websocket.connect"})
        answer = await self.receive_output(timeout)
        refused = answer["type"] == "websocket.close"
        return not refused, answer.get("code", 1000) if refused else None

    async def send_to(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        data = {"bytes": bytes_data} if text_data is None else {"text": text_data}
        await self.send_input({"type": "websocket.receive", **data})

    async def send_json_to(self, data: Any) -> None:
        await self.send_to(json.dumps(data))

    async def receive_from(self, timeout: float = 1) -> str:  # noqa: ASYNC109
        answer = await self.receive_output(timeout)
        assert answer["type"] == "websocket.send", answer
        text: str = answer["text"]
        return text

    async def receive_json_from(self, timeout: float = 1) -> Any:  # noqa: ASYNC109
        return json.loads(await self.receive_from(timeout))

    async def disconnect(self, timeout: float = 1) -> None:  # noqa: ASYNC109
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(timeout)  # type: ignore[no-untyped-call]
