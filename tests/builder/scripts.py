"""What a builder model says in the tests."""

from typing import Any

from tests.peers.anthropic_server import Reply, reply, tool

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
