"""A real server with users and tokens, and the official MCP client before it, over HTTP and over stdio."""

import os
import sys
from dataclasses import dataclass
from typing import Any

import httpx
import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult, TextContent

from tests.chat.server import ROOT, Server
from tests.peers.prepared import Person
from tests.waiting import PATIENCE

MODES = ("legacy", "auto")
"""With sessions, and stateless."""


@dataclass
class Site:
    """The server, its user and their tokens, by who or what they are for: `alice` their own, `bob` another user's."""

    server: Server
    user: Person
    tokens: dict[str, str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def client(self, who: str = "alice", mode: str = "auto", **options: Any) -> Client:
        """The official client over HTTP."""
        headers = {"authorization": f"Bearer {self.tokens.get(who, who)}"}
        http = httpx2.AsyncClient(headers=headers, timeout=PATIENCE)
        return Client(streamable_http_client(f"{self.url}/mcp", http_client=http), mode=mode, **options)

    def stdio(self, *arguments: str, mode: str = "auto", **options: Any) -> Client:
        """The same over stdio, with a process of its own."""
        return Client(self.command(*arguments), mode=mode, **options)

    def command(self, *arguments: str) -> StdioServerParameters:
        command = ["manage.py", "mcp", "--user", self.user.name, *arguments]
        environment = {**self.server.environment, "PATH": os.environ["PATH"]}
        return StdioServerParameters(
            command=sys.executable, args=command, cwd=str(ROOT), env=environment
        )

    def post(self, body: Any, who: str = "alice", **headers: str) -> httpx.Response:
        """A plain request, as the protocol with sessions has it."""
        accept = {"accept": "application/json, text/event-stream"}
        told = {"authorization": f"Bearer {self.tokens.get(who, who)}"} | accept | headers
        return httpx.post(f"{self.url}/mcp", json=body, headers=told, timeout=PATIENCE)

    def rest(self, method: str, path: str, who: str = "alice", **options: Any) -> Any:
        """Returns what REST answers a token of the user's."""
        answer = httpx.request(
            method,
            f"{self.url}/api/v1/{path}",
            headers={"authorization": f"Bearer {self.tokens[who]}"},
            timeout=PATIENCE,
            **options,
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def execute(self, sql: str, *values: str) -> None:
        """Changes rows, as another process does."""
        self.server.database.execute(sql, *values)

    def make(self, name: str, main: str = "", who: str = "alice", **more: Any) -> Any:
        """A capability of the user's; one with hosts or secrets is approved."""
        body = {
            "name": name,
            "description": f"Test {name}.",
            "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
            "files": {"main.py": main or SAYS},
            **more,
        }
        made = self.rest("POST", "capabilities/", who, json=body)
        if more.get("permissions"):
            made = self.rest("POST", f"capabilities/{name}/approve/", who, json={})
        return made

    def remove(self, *names: str) -> None:
        for name in names:
            self.rest("DELETE", f"capabilities/{name}/")


SAYS = 'def run(args: dict) -> str:\n    return "You said " + args.get("text", "nothing")\n'
RAISES = 'def run(args: dict) -> str:\n    raise ValueError("no such luck")\n'
SLOW = 'import time\ndef run(args: dict) -> str:\n    print("begun", flush=True)\n    time.sleep(600)\n    return "late"\n'


def site_of(server: Server, user: Person, other: Person) -> Site:
    """The running server as `user` sees it, beside another."""
    return Site(server, user, {**user.tokens, "alice": user.token, "bob": other.token})


def text_of(result: Any) -> str:
    """The text of a call's result, which every result has."""
    assert isinstance(result, CallToolResult)
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text
