"""Replies of a builder model in the tests."""

from collections import deque
from typing import Any

from tests.peers.anthropic_server import Answer, Reply, reply, tool

DICE = """import random


def run(args: dict) -> str:
    count, sides = int(args["count"]), int(args["sides"])
    if count < 1 or sides < 2:
        return "Roll at least one die with two sides."
    rolls = [random.randint(1, sides) for _ in range(count)]
    return f"{count}d{sides}: {', '.join(map(str, rolls))} (total {sum(rolls)})"
"""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"count": {"type": "integer"}, "sides": {"type": "integer"}},
    "required": ["count", "sides"],
}
EXAMPLES = [{"input": {"count": 3, "sides": 6}, "expect": "3d6"}]


def write(source: str = DICE, path: str = "main.py") -> Reply:
    return reply(tool("write_file", {"path": path, "content": source}))


def code(text: str) -> Reply:
    return reply(tool("run_code", {"code": text}))


def register(**fields: Any) -> Reply:
    return reply(tool("register_capability", {"examples": EXAMPLES, **fields}))


class Cast:
    """Answers as the one who is asked: the chat's model by its script, the builder's by its own, and helpers with little.

    Make it the server's `fallback`. What each of them was sent is in `chat_requests` and `builder_requests`.
    """

    def __init__(self, *, chat: list[Answer], builder: list[Answer]) -> None:
        self.chat, self.builder = deque(chat), deque(builder)
        self.chat_requests: list[dict[str, Any]] = []
        self.builder_requests: list[dict[str, Any]] = []

    def __call__(self, request: dict[str, Any]) -> Reply:
        tools = {each["name"] for each in request.get("tools", [])}
        if "register_capability" in tools:
            self.builder_requests.append(request)
            return self._next(self.builder, request)
        if "request_capability" in tools:
            self.chat_requests.append(request)
            return self._next(self.chat, request)
        return reply("A title")

    def _next(self, script: deque[Answer], request: dict[str, Any]) -> Reply:
        answer = script.popleft() if script else reply("Nothing more.")
        return answer if isinstance(answer, Reply) else answer(request)


def last_result(request: dict[str, Any]) -> dict[str, Any]:
    """The newest tool result that a request brings."""
    for message in reversed(request["messages"]):
        for block in reversed(message["content"]):
            if block["type"] == "tool_result":
                found: dict[str, Any] = block
                return found
    raise AssertionError("no tool result")
