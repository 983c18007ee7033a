"""The examples of docs/integrations.md that can run here, as they stand there: only address, token and paths are put in."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.chat.server import ROOT, Server
from tests.cli.izzy import Izzy
from tests.peers.anthropic_server import AnthropicServer
from tests.waiting import PATIENCE, eventually

PAGE = (ROOT / "docs" / "integrations.md").read_text()
BLOCK = re.compile(r"<!-- run: ([\w-]+) -->\n```(\w+)\n(.*?)```", re.DOTALL)
BLOCKS = {name: (language, code) for name, language, code in BLOCK.findall(PAGE)}
ALLERGY = "The user is allergic to peanuts and carries an epinephrine pen."

NOT_RUN = {
    "sdk-typescript": "the TypeScript SDK is no dependency",
    "langgraph": "LangGraph is no dependency",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, peer: AnthropicServer) -> Iterator[Server]:
    running = Server(tmp_path_factory.mktemp("server"), peer.url)
    running.environment["ANTHROPIC_API_KEY"] = "key-for-tests"
    running.start()
    yield running
    running.stop()


@pytest.fixture
def izzy(server: Server, tmp_path: Path) -> Izzy:
    signed_in = Izzy(tmp_path, f"http://127.0.0.1:{server.port}", server.token)
    signed_in.run("save", ALLERGY, "--importance", "5", "--kind", "fact").ok()
    return signed_in


def code_of(name: str, izzy: Izzy) -> str:
    return str(BLOCKS[name][1]).replace("http://127.0.0.1:8000", izzy.url)


def output_of(command: list[str], izzy: Izzy, **environment: str) -> str:
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=izzy.variables(environment),
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_each_example_is_run_or_said_why_not() -> None:
    ran = set(re.findall(r'(?:code_of|BLOCKS)[\(\[]"([\w-]+)"', Path(__file__).read_text()))
    assert set(BLOCKS) == ran | set(NOT_RUN)


def test_every_block_of_python_and_json_is_whole() -> None:
    for language, code in re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL):
        if language == "python":
            compile(code, "docs/integrations.md", "exec")
        elif language == "json":
            json.loads(code)


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_curl(izzy: Izzy) -> None:
    saved, context = re.findall(
        r"\{.*?\}(?=\{|\Z)", output_of(["sh", "-c", code_of("curl", izzy)], izzy), re.DOTALL
    )
    assert json.loads(saved)["content"] == "The user is allergic to peanuts."
    assert "allergic to peanuts" in json.loads(context)["text"]


def test_a_hook(izzy: Izzy) -> None:
    command = code_of("hook", izzy).replace("| izzy", f"| {sys.executable} -m izzy_cli")
    answer = json.loads(output_of(["sh", "-c", command], izzy))
    assert ALLERGY in answer["hookSpecificOutput"]["additionalContext"]


def test_the_python_sdk_through_the_proxy(izzy: Izzy) -> None:
    """A busy machine may take longer than the proxy waits for memory: then it is asked anew, in a session of its own."""
    attempts = count(1)

    def is_known() -> bool:
        code = code_of("sdk-python", izzy).replace("satay,", f"satay number {next(attempts)},")
        said = output_of([sys.executable, "-c", code], izzy, ANTHROPIC_API_KEY="key-of-ones-own")
        return ALLERGY in said  # the model repeats what it reads last

    eventually(is_known)


def test_an_mcp_client_over_http(izzy: Izzy) -> None:
    said = output_of([sys.executable, "-c", code_of("mcp", izzy)], izzy)
    assert "memory_search" in said
    assert ALLERGY in said


async def test_claude_desktops_server_over_stdio(izzy: Izzy, server: Server) -> None:
    settings = json.loads(BLOCKS["claude-desktop"][1])["mcpServers"]["izzy"]
    assert settings["command"].endswith("/.venv/bin/python")
    arguments = [
        part.replace("/path/of/izzy", str(ROOT)).replace("ada", "alice") for part in settings["args"]
    ]
    started = StdioServerParameters(command=sys.executable, args=arguments, env=server.environment)
    async with asyncio.timeout(PATIENCE), Client(stdio_client(started)) as client:
        found = await client.call_tool("memory_search", {"query": "peanut allergy"})
    assert ALLERGY in str(found.content)


def test_open_webuis_filter(izzy: Izzy, tmp_path: Path) -> None:
    space: dict[str, Any] = {}
    exec(compile(code_of("open-webui", izzy), "filter.py", "exec"), space)
    made = space["Filter"]()
    made.valves.token = izzy.token
    asked = {
        "role": "user",
        "content": "Which sauce goes with satay, given my peanut allergy?",
        "id": "m1",
    }
    body = made.inlet({"messages": [dict(asked)]})
    assert ALLERGY in body["messages"][0]["content"]
    answered = {"role": "assistant", "content": "A sesame sauce without a name.", "id": "m2"}
    for _ in range(2):
        made.outlet({"chat_id": "c1", "messages": [*body["messages"], answered]})
    [row] = [
        each
        for each in json.loads(izzy.run("conversations", "--json").ok().out)["results"]
        if each["session"] == "c1"
    ]
    assert (row["channel"], row["messages"]) == ("open-webui", 2)
