"""The tools with which the builder writes and tries code."""

import re
from dataclasses import dataclass
from typing import Annotated

from apps.agent.tools.base import Tier, ToolFailure, tool
from apps.builder.workshop.showing import code_text, command_text
from apps.builder.workshop.workshop import Workshop

MAX_CODE_SECONDS, MAX_COMMAND_SECONDS = 180, 300
GRACE_SECONDS = 90  # making a sandbox and its queue may add these to a call before the pipeline gives it up


@dataclass(frozen=True, slots=True)
class WriteFile:
    path: Annotated[str, {"minLength": 1, "maxLength": 300}]
    content: str


@tool(tier=Tier.SIDE_EFFECTING, timeout=30 + GRACE_SECONDS)
async def write_file(shop: Workshop, arguments: WriteFile) -> str:
    """Write a text file in the sandbox's home folder; it replaces one of that name. Give a relative path. The tool's code belongs
    into main.py, its packages into requirements.txt."""
    path, content = arguments.path, arguments.content
    await shop.post.progress(f"Writing {path}", "writing")
    await shop.bench.write_file(path, content)
    lines = content.count("\n") + (not content.endswith("\n"))
    return await shop.noted(f"Wrote {path} ({lines} lines, {len(content):,} characters).")


@dataclass(frozen=True, slots=True)
class RunCode:
    code: Annotated[str, {"minLength": 1, "maxLength": 100_000}]
    seconds: Annotated[float, {"minimum": 1, "maximum": MAX_CODE_SECONDS}] = 60


@tool(tier=Tier.SIDE_EFFECTING, timeout=MAX_CODE_SECONDS + GRACE_SECONDS)
async def run_code(shop: Workshop, arguments: RunCode) -> str:
    """Run Python in the sandbox and get its output and the value of its last line. Variables stay between calls; a module that
    you write anew is imported anew. To try the tool: import main; print(main.run({...}))."""
    await shop.post.progress("Trying the code", "testing")
    result = await shop.bench.run_code(arguments.code, seconds=arguments.seconds)
    text = await shop.noted(code_text(result))
    return text if result.ok else await _failed(shop, text, "That did not work yet; looking into it")


@dataclass(frozen=True, slots=True)
class RunCommand:
    command: Annotated[str, {"minLength": 1, "maxLength": 20_000}]
    seconds: Annotated[float, {"minimum": 1, "maximum": MAX_COMMAND_SECONDS}] = 120


@tool(tier=Tier.SIDE_EFFECTING, timeout=MAX_COMMAND_SECONDS + GRACE_SECONDS)
async def run_command(shop: Workshop, arguments: RunCommand) -> str:
    """Run a shell command in the sandbox's home folder, such as `python3 test_main.py`. `pip install PACKAGE` works there; nobody
    can answer a prompt."""
    found = re.search(r"pip3? install (.+)", arguments.command)
    packages = found[1].strip()[:100] if found else ""
    words, stage = (f"Installing {packages}", "installing") if packages else ("Running a command", "testing")
    await shop.post.progress(words, stage)
    result = await shop.bench.run_command(arguments.command, seconds=arguments.seconds)
    text = await shop.noted(command_text(result))
    return text if result.ok else await _failed(shop, text, "A command failed; looking into it")


async def _failed(shop: Workshop, text: str, words: str) -> str:
    await shop.failed(text)
    await shop.post.progress(words, "testing")
    raise ToolFailure(text)
