"""Measures what the Messages proxy adds to the first byte and to a whole answer, beside the bare upstream in the same run.

Conversations of twenty turns are sent in turn to an upstream of the benchmark's own and to the same upstream through Izzy, with
few notes and with many. A third way, without memory, tells what the proxy itself costs.
"""

import asyncio
import json
import time
from argparse import ArgumentParser
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from apps.gateway.surfacing import OPENING
from apps.memory.notes.creation import memory_bulk_create, memory_create
from benchmarks._network import WebProcess, model_server, web_process
from benchmarks._scratch import BATCH, Corpus, make_token, make_user, scratch_database
from benchmarks.report import Report, Timing

SIZES = (20, 10_000)
TURNS = 20
CONVERSATIONS = 3
PIECES = 20
PAUSE = 0.002
THINKING = 0.1  # seconds between two requests: nobody types faster
AIM_MS = 15.0
AIM_REPEATED = 0.9
KEY = "sk-ant-benchmark"
FACTS = (
    ("I am allergic to peanuts.", "Which snack shall I cook tonight, something with peanuts?"),
    ("My sister Ada lives in Lisbon.", "Plan a weekend in Lisbon with my sister."),
    ("I play tennis on Monday evenings.", "Find me an evening for a dinner; is Monday free of tennis?"),
    ("My bicycle is red and was made by Kona.", "Which bell fits my red bicycle?"),
    (
        "I work as a bookbinder in Graz.",
        "What should I tell people at the fair about my work as a bookbinder?",
    ),
)


@dataclass
class Way:
    """One way to the upstream, with what was measured on it in milliseconds."""

    name: str
    url: str
    headers: dict[str, str]
    first: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    errors: int = 0


@dataclass
class Measured:
    ways: list[Way]
    blocks: int = 0
    repeated: int = 0  # characters that requests have in common with the one before
    before: int = 0


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="NOTES")
    parser.add_argument("--conversations", type=int, default=CONVERSATIONS)


def run(options: dict[str, Any]) -> Report:
    report = Report(
        "proxy",
        settings={"turns": TURNS, "conversations": options["conversations"], "embedder": "static"},
    )
    for size in options["sizes"]:
        with scratch_database() as path:
            token = _fill(size)
            measured = asyncio.run(_measured(path.parent, token, options["conversations"]))
        _add(report, size, measured)
    return report


def _fill(size: int) -> str:
    """A user with so many made-up notes and the facts; their token."""
    user, corpus = make_user("alice"), Corpus()
    for batch in corpus.batches(size):
        memory_bulk_create(user_id=user.pk, drafts=[{"content": text} for text in batch[:BATCH]])
    for fact, _ in FACTS:
        memory_create(user_id=user.pk, content=fact, kind="fact", importance=5)
    return make_token(user)


async def _measured(folder: Path, token: str, conversations: int) -> Measured:
    async with model_server(lambda _: [{"type": "text", "text": _answer()}]) as (url, bodies):
        with web_process(folder, ANTHROPIC_BASE_URL=url) as izzy:
            ways = _ways(url, izzy, token)
            measured = Measured(ways)
            async with httpx.AsyncClient(timeout=60) as client:
                for _ in range(3):  # loads the index, and what else a server loads at first
                    await _turn(
                        client, Way("", ways[1].url, ways[1].headers), ["What do I like?"], "warm"
                    )
                    await asyncio.sleep(0.5)
                for number in range(conversations):
                    await _conversation(client, measured, number, bodies)
    return measured


def _ways(url: str, izzy: WebProcess, token: str) -> list[Way]:
    own = {"authorization": f"Bearer {KEY}"}
    through = {**own, "x-izzy-token": token}
    address = f"http://127.0.0.1:{izzy.port}"
    return [
        Way("the bare upstream", url, own),
        Way("through Izzy", address, through),
        Way("through Izzy, without memory", address, {**through, "x-claude-code-agent-id": "a"}),
    ]


async def _conversation(
    client: httpx.AsyncClient, measured: Measured, number: int, bodies: list[bytes]
) -> None:
    said: list[str] = []
    before = ""
    for turn in range(TURNS):
        _, asks = FACTS[turn % len(FACTS)]
        said.append(f"{asks} (Question {turn} of conversation {number}.)")
        for way in measured.ways:
            await _turn(client, way, said, f"session-{number}")
            if way is measured.ways[1]:
                sent = json.dumps(json.loads(bodies[-1])["messages"])[:-1]
                if before:
                    measured.before += len(before)
                    measured.repeated += _common(before, sent)
                before = sent
        said.append(f"Answer {turn}.")
    measured.blocks += before.count(OPENING)


async def _turn(client: httpx.AsyncClient, way: Way, said: list[str], session: str) -> None:
    messages = [{"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(said)]
    body = {"model": "claude-benchmark", "max_tokens": 500, "stream": True, "messages": messages}
    headers = {**way.headers, "x-izzy-session": session}
    began, first = time.perf_counter(), 0.0
    async with client.stream("POST", f"{way.url}/v1/messages", json=body, headers=headers) as answer:
        way.errors += answer.status_code != 200
        async for _ in answer.aiter_raw():
            first = first or time.perf_counter() - began
    way.first.append(first * 1000)
    way.total.append((time.perf_counter() - began) * 1000)
    await asyncio.sleep(THINKING)


async def _answer() -> AsyncIterator[str]:
    for _ in range(PIECES):
        await asyncio.sleep(PAUSE)
        yield "words "


def _common(one: str, other: str) -> int:
    """Characters that both begin with."""
    length = min(len(one), len(other))
    return next((at for at in range(length) if one[at] != other[at]), length)


def _add(report: Report, size: int, measured: Measured) -> None:
    section = report.section(
        f"{size:,} notes and {len(FACTS)} facts (milliseconds)",
        [
            "way",
            "first byte p50",
            "p95",
            "whole answer p50",
            "p95",
            "added to the first byte p50",
            "errors",
        ],
    )
    bare = Timing.of(measured.ways[0].first).p50
    for way in measured.ways:
        first, total = Timing.of(way.first), Timing.of(way.total)
        section.add(way.name, *first, *total, first.p50 - bare, way.errors)
    added = Timing.of(measured.ways[1].first).p50 - bare
    share = measured.repeated / measured.before
    report.section(
        f"{size:,} notes: what requests repeat",
        ["blocks added", "share of the request before"],
        [(measured.blocks, share)],
    )
    report.aims[
        f"the first byte comes at most {AIM_MS:.0f} ms later with {size:,} notes ({added:.1f})"
    ] = added <= AIM_MS
    report.aims[
        f"a request repeats ≥ {AIM_REPEATED:.0%} of the one before with {size:,} notes ({share:.1%})"
    ] = share >= AIM_REPEATED
