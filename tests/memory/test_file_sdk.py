"""Our commands beside the SDK's own file tool: the same calls to both, as a model makes them over the wire."""

from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic.tools import BetaAsyncAbstractMemoryTool, BetaAsyncLocalFilesystemMemoryTool, ToolError

from apps.accounts.models import User
from apps.core.db.pool import in_db
from apps.core.errors import IzzyError
from apps.memory.files.commands import command_run
from apps.memory.notes.revisions import BY_ASSISTANT
from tests.peers.anthropic_server import AnthropicServer, reply, tool

pytestmark = pytest.mark.django_db(transaction=True)

A, B = "/memories/a.txt", "/memories/b/c.txt"
CALLS: list[dict[str, Any]] = [
    {"command": "create", "path": A, "file_text": "one\ntwo\nthree\nfour\nfive\nsix"},
    {"command": "create", "path": B, "file_text": "x" * 1536},
    {"command": "view", "path": A},
    {"command": "view", "path": A, "view_range": [2, 3]},
    {"command": "view", "path": A, "view_range": [5, -1]},
    {"command": "view", "path": "/memories/none.txt"},
    {"command": "str_replace", "path": A, "old_str": "four", "new_str": "4"},
    {"command": "str_replace", "path": A, "old_str": "nine", "new_str": "9"},
    {"command": "str_replace", "path": A, "old_str": "e", "new_str": "E"},
    {"command": "str_replace", "path": "/memories/none.txt", "old_str": "a", "new_str": "b"},
    {"command": "insert", "path": A, "insert_line": 0, "insert_text": "zero\n"},
    {"command": "insert", "path": A, "insert_line": 7, "insert_text": "seven"},
    {"command": "insert", "path": A, "insert_line": 99, "insert_text": "x"},
    {"command": "view", "path": A},
    {"command": "rename", "old_path": A, "new_path": B},
    {"command": "rename", "old_path": "/memories/none.txt", "new_path": "/memories/d.txt"},
    {"command": "rename", "old_path": "/memories/b", "new_path": "/memories/new/b"},
    {"command": "view", "path": "/memories/new/b/c.txt"},
    {"command": "delete", "path": "/memories"},
    {"command": "rename", "old_path": "/memories", "new_path": "/memories/x"},
    {"command": "delete", "path": "/memories/new"},
    {"command": "delete", "path": "/memories/new"},
    {"command": "view", "path": "/etc/passwd"},
    {"command": "view", "path": "/memories/../../etc/passwd"},
]  # fmt: skip


class Izzys(BetaAsyncAbstractMemoryTool):
    """The SDK's tool, answered by Izzy's commands."""

    def __init__(self, user: User) -> None:
        super().__init__()
        self.user = user

    async def execute(self, command: Any) -> str:
        fields = command.model_dump(exclude_none=True)
        try:
            return await in_db(command_run, user_id=self.user.pk, fields=fields, change=BY_ASSISTANT)
        except IzzyError as error:
            raise ToolError(error.message) from error

    async def view(self, command: Any) -> str:
        return await self.execute(command)

    create = str_replace = insert = delete = rename = view


async def answers(memory: Any) -> list[tuple[str, bool]]:
    """Returns what a model gets when the SDK's own loop runs the calls, one by one."""
    async with AnthropicServer() as server:
        server.add(*(reply(tool("memory", fields)) for fields in CALLS), reply("Done."))
        async with anthropic.AsyncAnthropic(api_key="k", base_url=server.url) as client:
            runner = client.beta.messages.tool_runner(
                model="claude-sonnet-5-5",
                max_tokens=1000,
                messages=[{"role": "user", "content": "Go."}],
                tools=[memory],
                thread=False,
            )
            last = await runner.until_done()
        assert last.stop_reason == "end_turn"
        assert server.messages[0]["tools"] == [{"type": "memory_20250818", "name": "memory"}]
        results = [sent["messages"][-1]["content"][0] for sent in server.messages[1:]]
    return [(_text(block["content"]), bool(block.get("is_error"))) for block in results]


def _text(content: Any) -> str:
    text = content if isinstance(content, str) else "".join(block["text"] for block in content)
    return text.removeprefix("Error: ").replace(
        "the range of lines of the file: [0, 8]", "the range [0, 8]."
    )


async def test_the_commands_answer_as_the_sdks_own_tool_does(alice: User, tmp_path: Path) -> None:
    """But for the documented differences: the prefix of errors, and the range of an insertion in other words."""
    ours = await answers(Izzys(alice))
    theirs = await answers(BetaAsyncLocalFilesystemMemoryTool(str(tmp_path)))
    for fields, mine, other in zip(CALLS, ours, theirs, strict=True):
        assert mine == other, fields
