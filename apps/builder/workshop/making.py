"""The tools with which the builder writes and tries code."""

import re
from dataclasses import dataclass
from typing import Any

from apps.agent.tools.base import Tier, Tool, ToolContext, ToolFailure
from apps.builder.workshop.showing import code_text, command_text
from apps.builder.workshop.workshop import Workshop

CODE_SECONDS, MAX_CODE_SECONDS = 60, 180
COMMAND_SECONDS, MAX_COMMAND_SECONDS = 120, 300
GRACE_SECONDS = 90
"""What making a sandbox and its queue may add to a call before the pipeline gives it up."""

WRITE_FILE = (
    "Write a text file in the sandbox's home folder; it replaces one of that name. Give a relative path. The tool's code belongs "
    "into main.py, its packages into requirements.txt."
)
RUN_CODE = (
    "Run Python in the sandbox and get its output and the value of its last line. Variables stay between calls; a module that "
    "you write anew is imported anew. To try the tool: import main; print(main.run({...}))."
)
RUN_COMMAND = (
    "Run a shell command in the sandbox's home folder, such as `python3 test_main.py`. `pip install PACKAGE` works there; nobody "
    "can answer a prompt."
)


@dataclass(frozen=True)
class Making:
    """Writing, running and installing, in the sandbox of one build."""

    shop: Workshop

    async def write_file(self, context: ToolContext, args: dict[str, Any]) -> str:
        path, content = args["path"], args["content"]
        await self.shop.post.progress(f"Writing {path}", "writing")
        await self.shop.bench.write_file(path, content)
        lines = content.count("\n") + (not content.endswith("\n"))
        return await self.shop.noted(f"Wrote {path} ({lines} lines, {len(content):,} characters).")

    async def run_code(self, context: ToolContext, args: dict[str, Any]) -> str:
        await self.shop.post.progress("Trying the code", "testing")
        seconds = min(args.get("seconds", CODE_SECONDS), MAX_CODE_SECONDS)
        result = await self.shop.bench.run_code(args["code"], seconds=seconds)
        text = await self.shop.noted(code_text(result))
        return text if result.ok else await self._failed(text, "That did not work yet; looking into it")

    async def run_command(self, context: ToolContext, args: dict[str, Any]) -> str:
        command = args["command"]
        found = re.search(r"pip3? install (.+)", command)
        packages = found[1].strip()[:100] if found else ""
        words, stage = (
            (f"Installing {packages}", "installing") if packages else ("Running a command", "testing")
        )
        await self.shop.post.progress(words, stage)
        seconds = min(args.get("seconds", COMMAND_SECONDS), MAX_COMMAND_SECONDS)
        result = await self.shop.bench.run_command(command, seconds=seconds)
        text = await self.shop.noted(command_text(result))
        return text if result.ok else await self._failed(text, "A command failed; looking into it")

    async def _failed(self, text: str, words: str) -> str:
        await self.shop.failed(text)
        await self.shop.post.progress(words, "testing")
        raise ToolFailure(text)


def making_tools(shop: Workshop) -> list[Tool]:
    """`write_file`, `run_code` and `run_command` of one build."""
    making = Making(shop)
    file = {"path": _text(300), "content": {"type": "string"}}
    code = {"code": _text(100_000), "seconds": _seconds(MAX_CODE_SECONDS)}
    command = {"command": _text(20_000), "seconds": _seconds(MAX_COMMAND_SECONDS)}
    return [
        Tool(
            name="write_file",
            description=WRITE_FILE,
            input_schema=_object(file, "path", "content"),
            handler=making.write_file,
            tier=Tier.SIDE_EFFECTING,
            timeout=30 + GRACE_SECONDS,
        ),
        Tool(
            name="run_code",
            description=RUN_CODE,
            input_schema=_object(code, "code"),
            handler=making.run_code,
            tier=Tier.SIDE_EFFECTING,
            timeout=MAX_CODE_SECONDS + GRACE_SECONDS,
        ),
        Tool(
            name="run_command",
            description=RUN_COMMAND,
            input_schema=_object(command, "command"),
            handler=making.run_command,
            tier=Tier.SIDE_EFFECTING,
            timeout=MAX_COMMAND_SECONDS + GRACE_SECONDS,
        ),
    ]


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _text(most: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _seconds(most: int) -> dict[str, Any]:
    return {"type": "number", "minimum": 1, "maximum": most}
