"""The tools with which the builder writes and tries code."""

from typing import Any

from apps.agent.tools.base import Tier, Tool, ToolContext, ToolFailure
from apps.builder.workshop.showing import code_text, command_text
from apps.builder.workshop.workshop import Workshop

CODE_SECONDS, MAX_CODE_SECONDS = 60, 180
COMMAND_SECONDS, MAX_COMMAND_SECONDS = 120, 300
GRACE_SECONDS = 90
"""What making a sandbox and its queue may add to a call before the pipeline gives it up."""


def making_tools(shop: Workshop) -> list[Tool]:
    """`write_file`, `run_code` and `run_command` of one build."""

    async def write_file(context: ToolContext, args: dict[str, Any]) -> str:
        path, content = args["path"], args["content"]
        await shop.post.progress(f"Writing {path}", "writing")
        await shop.bench.write_file(path, content)
        lines = content.count("\n") + (not content.endswith("\n"))
        return await shop.noted(f"Wrote {path} ({lines} lines, {len(content):,} characters).")

    async def run_code(context: ToolContext, args: dict[str, Any]) -> str:
        await shop.post.progress("Trying the code", "testing")
        seconds = min(args.get("seconds", CODE_SECONDS), MAX_CODE_SECONDS)
        result = await shop.bench.run_code(args["code"], seconds=seconds)
        text = await shop.noted(code_text(result))
        if not result.ok:
            await _failed(text, "That did not work yet; looking into it")
        return text

    async def run_command(context: ToolContext, args: dict[str, Any]) -> str:
        command = args["command"]
        install = "pip install" in command
        await shop.post.progress(
            f"Installing {command.partition('pip install')[2].strip()[:100]}"
            if install
            else "Running a command",
            "installing" if install else "testing",
        )
        seconds = min(args.get("seconds", COMMAND_SECONDS), MAX_COMMAND_SECONDS)
        result = await shop.bench.run_command(command, seconds=seconds)
        text = await shop.noted(command_text(result))
        if not result.ok:
            await _failed(text, "A command failed; looking into it")
        return text

    async def _failed(text: str, words: str) -> None:
        await shop.failed(text)
        await shop.post.progress(words, "testing")
        raise ToolFailure(text)

    return [
        Tool(
            name="write_file",
            description=(
                "Write a text file in the sandbox's home folder; it replaces one of that name. Give a relative path. The "
                "tool's code belongs into main.py, its packages into requirements.txt."
            ),
            input_schema={
                "type": "object",
                "properties": {
                    "path": {"type": "string", "minLength": 1, "maxLength": 300},
                    "content": {"type": "string"},
                },
                "required": ["path", "content"],
                "additionalProperties": False,
            },
            handler=write_file,
            tier=Tier.SIDE_EFFECTING,
            timeout=30 + GRACE_SECONDS,
        ),
        Tool(
            name="run_code",
            description=(
                "Run Python in the sandbox and get its output. Variables and imports stay between calls. To try the tool: "
                "import main, importlib.reload(main) after changes, print(main.run({...}))."
            ),
            input_schema={
                "type": "object",
                "properties": {
                    "code": {"type": "string", "minLength": 1, "maxLength": 100_000},
                    "seconds": {"type": "number", "minimum": 1, "maximum": MAX_CODE_SECONDS},
                },
                "required": ["code"],
                "additionalProperties": False,
            },
            handler=run_code,
            tier=Tier.SIDE_EFFECTING,
            timeout=MAX_CODE_SECONDS + GRACE_SECONDS,
        ),
        Tool(
            name="run_command",
            description="Run a shell command in the sandbox's home folder. `pip install PACKAGE` works there.",
            input_schema={
                "type": "object",
                "properties": {
                    "command": {"type": "string", "minLength": 1, "maxLength": 20_000},
                    "seconds": {"type": "number", "minimum": 1, "maximum": MAX_COMMAND_SECONDS},
                },
                "required": ["command"],
                "additionalProperties": False,
            },
            handler=run_command,
            tier=Tier.SIDE_EFFECTING,
            timeout=MAX_COMMAND_SECONDS + GRACE_SECONDS,
        ),
    ]
