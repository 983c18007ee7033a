"""The floor of the chat benchmark: a Channels consumer that sends back what it gets, and nothing else."""

from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter


class Echo(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels is untyped
    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.send(text_data=text_data)


application = ProtocolTypeRouter({"websocket": Echo.as_asgi()})
