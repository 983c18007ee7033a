"""A websocket client of the chat, as a page is one."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from django.test import AsyncClient

from apps.accounts.models import APIToken, User
from apps.accounts.services import token_create
from apps.chat.consumers import chat_socket
from apps.core.db.pool import in_db
from tests.waiting import PATIENCE
from tests.websocket import WebsocketCommunicator

Frame = dict[str, Any]
ENDS = {"response", "turn_stopped", "error"}


class Socket:
    """Sends frames and reads events; what it has read is in `seen`."""

    def __init__(self, communicator: WebsocketCommunicator) -> None:
        self.communicator = communicator
        self.seen: list[Frame] = []

    async def send(self, type: str, **values: Any) -> None:
        await self.communicator.send_json_to({"type": type, **values})

    async def next(self) -> Frame:
        frame: Frame = json.loads(await self.communicator.receive_from(PATIENCE))
        self.seen.append(frame)
        return frame

    async def until(self, *types: str) -> Frame:
        """Reads on to the first frame of one of these types."""
        while True:
            frame = await self.next()
            if frame["type"] in types:
                return frame

    async def ended(self) -> Frame:
        """Reads on to the end of a turn's stream."""
        while True:
            frame = await self.until(*ENDS)
            if "turn" in frame:
                return frame

    async def say(self, text: str, **values: Any) -> Frame:
        """Sends a message and reads its acknowledgement."""
        await self.send("message", text=text, **{"client_id": uuid4().hex, **values})
        return await self.until("turn_queued", "error")

    async def snapshot(self, conversation: str) -> Frame:
        await self.send("open", conversation=conversation)
        return await self.until("snapshot", "error")

    def types(self, turn: str | None = None) -> list[str]:
        """The types of what was read (of a turn), without the derived html events."""
        frames = [frame for frame in self.seen if turn is None or frame.get("turn") == turn]
        return [frame["type"] for frame in frames if frame["type"] != "html"]

    def text(self, turn: str) -> str:
        """The turn's text as its deltas give it."""
        mine = [
            frame for frame in self.seen if frame.get("turn") == turn and frame["type"] == "text_delta"
        ]
        return "".join(frame["text"] for frame in mine)


@asynccontextmanager
async def connected(
    user: User, token: APIToken | None = None, session: object = None
) -> AsyncIterator[Socket]:
    """A socket of this user, already let in."""
    communicator = WebsocketCommunicator(chat_socket, "/ws/chat/")
    communicator.scope |= {"user": user, "token": token, "session": session}
    accepted, _ = await communicator.connect(timeout=PATIENCE)
    assert accepted
    try:
        yield Socket(communicator)
    finally:
        await communicator.disconnect(timeout=PATIENCE)


class Program:
    """A client of the REST interface that holds a token; asynchronous, so that turns run in the test's event loop."""

    def __init__(self, token: str) -> None:
        self.client = AsyncClient()
        self.headers = {"authorization": f"Bearer {token}"}

    async def get(self, path: str) -> Any:
        return await self.client.get(f"/api/v1/{path}", headers=self.headers)

    async def send(self, method: str, path: str, body: object = None) -> Any:
        """A request with a JSON body (none for None)."""
        data = "" if body is None else json.dumps(body)
        call = getattr(self.client, method)
        if method == "get":
            return await self.get(path)
        return await call(
            f"/api/v1/{path}", data=data, content_type="application/json", headers=self.headers
        )

    async def post(self, path: str, body: object) -> Any:
        return await self.send("post", path, body)


async def program_of(user: User, *scopes: str) -> Program:
    made = await in_db(lambda: token_create(user=user, name="t", scopes=scopes or ("read", "write")))
    return Program(made[1])
