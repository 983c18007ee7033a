"""How soon a chat answers while ten tools are built at once, beside the same chat on an idle server."""

import asyncio
import os
import tempfile
import time
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import httpx

from benchmarks._network import Block, background_process, izzy_process, model_server
from benchmarks.report import Report, Timing

AIM = 2.0
WARM_UP = 10
MAX_SECONDS = 300
TRIES = 20
"""Runs of code before a builder hands its tool in; a build has 25 rounds at most."""
MAIN = """import random


def run(args: dict) -> str:
    return str(random.randint(1, 6))
"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--builds", type=int, default=10, help="tools that are built at once")
    parser.add_argument("--messages", type=int, default=60, help="messages to the idle server")
    parser.add_argument("--pause", type=float, default=0.05, help="seconds between two messages")


def run(options: dict[str, Any]) -> Report:
    """A web process, a worker with real sandboxes, and a model that answers at once: all time is Izzy's own."""
    with tempfile.TemporaryDirectory(prefix="izzy-sandboxes-") as sandboxes:
        Path(sandboxes).chmod(0o755)
        return asyncio.run(_run(options["builds"], options["messages"], options["pause"], sandboxes))


async def _run(builds: int, messages: int, pause: float, sandboxes: str) -> Report:
    async with model_server(_answer) as (url, _):
        environment = {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "benchmark",
            "IZZY_BUILDS_PER_USER": str(builds),
            "IZZY_BUILDS": str(builds),
        }
        with (
            izzy_process(**environment) as izzy,
            background_process(
                ["manage.py", "worker"], izzy.folder, IZZY_SANDBOX_DIR=sandboxes, **environment
            ),
        ):
            async with httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{izzy.port}", headers=izzy.headers, timeout=60
            ) as client:
                await _first_tokens(client, WARM_UP, 0.0)
                idle = await _first_tokens(client, messages, pause)
                busy, states, seconds = await _meanwhile(client, builds, pause)
    report = Report(
        "builds", settings={"builds at once": builds, "pause s": pause, "cores": os.cpu_count() or 0}
    )
    quiet, loaded = Timing.of(idle), Timing.of(busy)
    ratio = loaded.p95 / quiet.p95
    report.section(
        "From a message to the first text of its answer, ms",
        ["server", "n", "p50", "p95"],
        [
            ("idle", len(idle), *quiet),
            (f"{builds} builds at once", len(busy), *loaded),
            ("ratio", None, loaded.p50 / quiet.p50, ratio),
        ],
    )
    report.section(
        "The builds", ["asked for", "done", "seconds"], [(builds, states.count("done"), seconds)]
    )
    report.aims["all builds end well"] = states == ["done"] * builds
    report.aims[f"chat: p95 to the first text ≤ {AIM:g} × idle"] = ratio <= AIM
    return report


async def _meanwhile(
    client: httpx.AsyncClient, builds: int, pause: float
) -> tuple[list[float], list[str], float]:
    """Chats for as long as builds go on; the times, how the builds ended, and how long all took."""
    began = time.monotonic()
    request = {"description": "Rolls a die.", "input_schema": {"type": "object", "properties": {}}}
    for number in range(builds):
        (
            await client.post("/api/v1/builds/", json=request | {"name": f"die_{number}"})
        ).raise_for_status()
    times: list[float] = []
    while time.monotonic() < began + MAX_SECONDS:
        times += await _first_tokens(client, 1, pause)
        listed = (await client.get("/api/v1/builds/")).json()["results"]
        states = [build["state"] for build in listed]
        if not {"queued", "running"} & set(states):
            break
    return times, states, time.monotonic() - began


async def _first_tokens(client: httpx.AsyncClient, count: int, pause: float) -> list[float]:
    """Milliseconds from sending a message to the first text of its answer; each answer is read to its end."""
    times = []
    for _ in range(count):
        began, first = time.perf_counter(), 0.0
        async with client.stream(
            "POST", "/api/v1/chat/", json={"message": "Hi", "stream": True}
        ) as answer:
            async for line in answer.aiter_lines():
                if line == "event: text_delta" and not first:
                    first = (time.perf_counter() - began) * 1000
        times.append(first)
        await asyncio.sleep(pause)
    return times


def _answer(request: dict[str, Any]) -> list[Block]:
    """A builder that writes, tries and hands in; a chat that says hello."""
    if "register_capability" not in {tool["name"] for tool in request.get("tools", [])}:
        return [{"type": "text", "text": "Hello."}]
    steps: list[tuple[str, dict[str, Any]]] = [
        ("write_file", {"path": "main.py", "content": MAIN}),
        *[("run_code", {"code": "import main; print(main.run({}))"})] * TRIES,
        ("register_capability", {"examples": [{"input": {}}]}),
    ]
    done = sum(message["role"] == "assistant" for message in request["messages"])
    name, given = steps[min(done, TRIES + 1)]
    return [{"type": "tool_use", "id": f"toolu_{done}", "name": name, "input": given}]
