"""The proxy in this process, before an upstream on the loopback interface that writes down what it is asked."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from django.test import override_settings

from apps.accounts.models import APIToken, User
from apps.accounts.services import token_create
from apps.core.db.pool import in_db
from apps.core.http.edge import ABORT
from apps.gateway.proxy import app
from tests.peers.anthropic_server import AnthropicServer
from tests.waiting import until

OWN_KEY = "sk-ant-of-the-client"
INSTANCE_KEY = "sk-ant-of-the-instance"
MODEL = "claude-sonnet-5-5"


@dataclass
class Answered:
    """`cut` says that the connection was broken off."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: bool = False

    @property
    def json(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.body)
        return loaded


@dataclass
class Proxy:
    """Asks the proxy; `upstream.messages` are the requests that it passed on."""

    upstream: AnthropicServer
    secret: str = ""

    async def token(self, user: User, *scopes: str, **fields: Any) -> APIToken:
        """Asks with a new token of the user from now on."""
        token, self.secret = await in_db(
            token_create, user=user, name="proxy", scopes=scopes or ("write",), **fields
        )
        return token

    async def ask(
        self,
        *messages: Any,
        session: str = "",
        path: str = "/v1/messages",
        headers: dict[str, str] | None = None,
        leaves: asyncio.Event | None = None,
        **fields: Any,
    ) -> Answered:
        """Sends messages, given as text of user and assistant in turn or as they are, and waits until all is stored."""
        whole = [
            one if isinstance(one, dict) else {"role": ("user", "assistant")[at % 2], "content": one}
            for at, one in enumerate(messages)
        ]
        body = {"model": MODEL, "max_tokens": 1000, "messages": whole, **fields}
        named = {"x-izzy-session": session} if session else {}
        given = {**named, **(headers or {})}
        answered = await self.send("POST", path, json.dumps(body).encode(), given, leaves=leaves)
        await stored()
        return answered

    async def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: dict[str, str] | None = None,
        leaves: asyncio.Event | None = None,
    ) -> Answered:
        """Sends a request with the client's own key and Izzy's token beside it; "" in `headers` leaves a header out. The client goes
        away when `leaves` is set."""
        given = {"authorization": f"Bearer {OWN_KEY}", "x-izzy-token": self.secret, **(headers or {})}
        pairs = [(name.encode(), value.encode()) for name, value in given.items() if value]
        where, _, query = path.partition("?")
        scope = {
            "type": "http", "method": method, "path": where, "raw_path": where.encode(),
            "query_string": query.encode(), "headers": pairs, "extensions": {ABORT: {}},
        }  # fmt: skip
        answered, over = Answered(), leaves or asyncio.Event()
        pending = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive() -> dict[str, Any]:
            if not pending:
                await over.wait()
                return {"type": "http.disconnect"}
            return pending.pop()

        async def reply(message: dict[str, Any]) -> None:
            if message["type"] == "http.response.start":
                answered.status = message["status"]
                answered.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            elif message["type"] == ABORT:
                answered.cut = True
            else:
                answered.body += message["body"]

        await app.MessagesProxy(None)(scope, receive, reply)
        return answered

    @property
    def newest(self) -> list[dict[str, Any]]:
        """The messages of the newest request that went upstream."""
        messages: list[dict[str, Any]] = self.upstream.messages[-1]["messages"]
        return messages


async def stored() -> None:
    """Waits until nothing of an answer is still being stored."""
    await until(lambda: not app._afterwards, every=0.005)


@asynccontextmanager
async def proxied(**options: Any) -> AsyncIterator[Proxy]:
    async with AnthropicServer(**options) as upstream:
        settings = {
            "ANTHROPIC_BASE_URL": upstream.url, "ANTHROPIC_API_KEY": INSTANCE_KEY, "IZZY_PROXY_UPSTREAM": "",
        }  # fmt: skip
        # However slow this machine is: what takes too long has a test of its own.
        with override_settings(**settings), patch.object(app, "MEMORY_SECONDS", 60):
            yield Proxy(upstream)
            await stored()


def blocks_of(message: dict[str, Any]) -> list[str]:
    """The blocks of memory in a message."""
    if isinstance(message["content"], str):
        return []
    texts = [block.get("text", "") for block in message["content"]]
    return [text for text in texts if text.startswith("<izzy-memories>")]
