"""How much of each request repeats the one before, byte for byte, over a conversation with tools, and over one that
outgrows its budget and is summed up."""

import asyncio
import json
import statistics
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from itertools import pairwise
from os.path import commonprefix
from typing import Any

from django.test import override_settings

from apps.accounts.models import User
from apps.chat.conversations.services import conversation_create
from apps.chat.turns.scheduler import scheduler
from apps.chat.turns.services import message_send
from apps.core.db.pool import in_db
from apps.core.text import estimate_tokens
from apps.memory.models import Origin, Trust
from apps.memory.notes.creation import memory_create
from apps.memory.notes.revisions import Change
from benchmarks._network import Block, model_server
from benchmarks._scratch import make_user, scratch_database
from benchmarks.report import Report

AIM_SHARE = 0.90
NOTES = (
    "Anna is allergic to shellfish.",
    "Anna's sister Marie lives in Lyon and works as an architect.",
    "The router in the cellar needs a restart after every power cut.",
    "Anna is learning Portuguese for a trip to Porto in May.",
    "The car is due for its inspection in March.",
)
TOPICS = (
    "What can I cook for Marie on Saturday?",
    "The WiFi is down again, what was it last time?",
    "Help me plan a week in Porto.",
    "Remember that I prefer trains to planes.",
    "When is the car due?",
)
PARTS = ("tools", "system", "messages")
SUMMARY = (
    "The user asked what to cook for Marie, about the WiFi, for a plan of a week in Porto and when the car is due. "
    * 6
)


@dataclass(frozen=True, slots=True)
class Sent:
    """A request's three parts as the bytes on the wire had them."""

    tools: str
    system: str
    messages: str

    def starts_with(self, earlier: "Sent") -> bool:
        """Whether all of the earlier request is the beginning of this one."""
        grown = self.messages.startswith(earlier.messages[:-1])
        return self.tools.startswith(earlier.tools[:-1]) and self.system == earlier.system and grown

    def tokens(self) -> int:
        return sum(estimate_tokens(part) for part in astuple(self))

    def repeated(self, earlier: "Sent") -> int:
        """The tokens of this request's beginning that the earlier one had too."""
        total = 0
        for mine, other in zip(astuple(self), astuple(earlier), strict=True):
            total += estimate_tokens(commonprefix([mine, other]))  # noqa: RUF071 - of characters
            if mine != other:
                break
        return total


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument(
        "--long", type=int, default=80, help="turns of the conversation that is summed up"
    )
    parser.add_argument("--budget", type=int, default=10_000, help="its budget (IZZY_HISTORY_TOKENS)")


def run(options: dict[str, Any]) -> Report:
    """Conversations of so many turns, each with a tool call, through the real runner and SDK."""
    with scratch_database():
        user = make_user("benchmark")
        for note in NOTES:
            memory_create(
                user_id=user.id, content=note, change=Change(actor=Origin.USER, trust=Trust.USER)
            )
        bodies, per_turn = converse([(user, _messages(options["turns"]))], _answer)
        with override_settings(IZZY_HISTORY_TOKENS=options["budget"]):
            long_bodies, _ = converse([(user, _messages(options["long"]))], _answer)
    report = _report([sent_parts(body) for body in bodies], per_turn)
    _report_long(report, long_bodies, options["long"], options["budget"])
    return report


def _messages(turns: int) -> list[str]:
    return [f"{TOPICS[number % len(TOPICS)]} ({number + 1})" for number in range(turns)]


def converse(
    conversations: Sequence[tuple[User, Sequence[str]]], answer: Callable[[dict[str, Any]], list[Block]]
) -> tuple[list[bytes], list[int]]:
    """Have users say something, each in a conversation of their own, through the real runner and SDK.

    Returns the bytes of all requests, and how many there were after each turn.
    """
    return asyncio.run(_converse(conversations, answer))


async def _converse(
    conversations: Sequence[tuple[User, Sequence[str]]], answer: Callable[[dict[str, Any]], list[Block]]
) -> tuple[list[bytes], list[int]]:
    counts = []
    async with model_server(answer) as (url, bodies):
        with override_settings(ANTHROPIC_BASE_URL=url):
            for user, texts in conversations:
                place = await in_db(partial(conversation_create, user_id=user.id, title="Benchmark"))
                for text in texts:
                    await in_db(message_send, user_id=user.id, text=text, conversation=place.id)
                    await scheduler().schedule(place.id)
                    await scheduler().idle()
                    counts.append(len(bodies))
            await scheduler().close()
    return bodies, counts


def _answer(request: dict[str, Any]) -> list[Block]:
    """A tool call for the user's words, a paragraph for the tool's result."""
    newest = request["messages"][-1]["content"]
    if isinstance(newest, str):
        return [{"type": "text", "text": SUMMARY}]
    count = len(request["messages"])
    if any(block["type"] == "tool_result" for block in newest):
        words = "That is what I found, and this is what I would do with it. " * 5
        return [{"type": "text", "text": words.strip()}]
    words = newest[-1]["text"]
    if words.startswith("Remember"):
        call = {"name": "memory_save", "input": {"content": words}}
    else:
        call = {"name": "memory_search", "input": {"query": words, "top_k": 5}}
    return [
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "id": f"toolu_{count}", **call},
    ]


def sent_parts(body: bytes) -> Sent:
    """The parts of a request's body, cut out of its text without reading them as values."""
    text = body.decode()
    found = dict.fromkeys(PARTS, "[]")
    decoder, at = json.JSONDecoder(), text.index("{") + 1
    while text[at] != "}":
        key, at = decoder.raw_decode(text, at)
        start = at + 1 + len(text[at + 1 :]) - len(text[at + 1 :].lstrip())
        _, at = decoder.raw_decode(text, start)
        if key in found:
            found[key] = text[start:at]
        at += 1 if text[at] == "," else 0
        at += len(text[at:]) - len(text[at:].lstrip())
    return Sent(**found)


def _report_long(report: Report, bodies: list[bytes], turns: int, budget: int) -> None:
    """Adds what became of the conversation that was summed up."""
    kinds = [bool(json.loads(body).get("tools")) for body in bodies]
    requests = [sent_parts(body) for body, of_turn in zip(bodies, kinds, strict=True) if of_turn]
    renewed = sum(later and not earlier for earlier, later in pairwise(kinds))
    spent = sum(
        estimate_tokens(body.decode())
        for body, of_turn in zip(bodies, kinds, strict=True)
        if not of_turn
    )
    sizes, _, broken, share = _repetition(requests)
    largest = max(estimate_tokens(sent.messages) for sent in requests)
    report.section(
        f"A conversation of {turns} turns with a budget of {budget:,} tokens",
        ["what", "value"],
        [
            ("requests", len(requests)),
            ("summaries made", len(bodies) - len(requests)),
            ("requests that do not start with the one before", broken),
            ("share of input that repeats the request before, %", 100 * share),
            ("largest history sent, tokens", largest),
            ("input tokens of all requests", sum(sizes)),
            ("input tokens of the summaries", spent),
            ("input tokens, had nothing been summed up", _unsummed(requests)),
        ],
    )
    report.settings |= {"long turns": turns, "budget": budget}
    report.aims["the prompt's beginning changes only when a summary is made"] = broken == renewed
    report.aims["the history sent never exceeds twice its budget"] = largest <= 2 * budget


def _repetition(requests: list[Sent]) -> tuple[list[int], list[int], int, float]:
    """The tokens of each request, of each but the first those that repeat the one before, how many do not start with it,
    and the share of all input that repeats."""
    sizes = [sent.tokens() for sent in requests]
    repeated = [later.repeated(earlier) for earlier, later in pairwise(requests)]
    broken = sum(not later.starts_with(earlier) for earlier, later in pairwise(requests))
    return sizes, repeated, broken, sum(repeated) / sum(sizes[1:])


def _unsummed(requests: list[Sent]) -> int:
    """The input of these requests, had nothing been summed up: each adds the answer before it and its newest message."""
    fixed = estimate_tokens(requests[0].tools) + estimate_tokens(requests[0].system)
    total, history = 0, 0
    for sent in requests:
        history += estimate_tokens(json.dumps(json.loads(sent.messages)[-2:], ensure_ascii=False))
        total += fixed + history
    return total


def _report(requests: list[Sent], per_turn: list[int]) -> Report:
    sizes, repeated, broken, share = _repetition(requests)
    ends = [sizes[count - 1] for count in per_turn]
    added = [later - earlier for earlier, later in pairwise(ends)]
    report = Report("prompt", settings={"turns": len(per_turn), "requests": len(requests)})
    columns = ["turn", "requests", "tokens", "repeated", "share %", "added"]
    table = report.section("Requests, in estimated tokens", columns)
    for turn, count in enumerate(per_turn):
        before = per_turn[turn - 1] if turn else 0
        size = sum(sizes[before:count])
        again = sum(repeated[max(0, before - 1) : count - 1])
        grown = added[turn - 1] if turn else sizes[0]
        table.add(turn + 1, count - before, size, again, 100 * again / size, grown)
    # If what differs per turn stood in the system prompt, a new turn would repeat the tools alone.
    naive = sum(
        estimate_tokens(requests[index].tools) if index in per_turn else again
        for index, again in enumerate(repeated, 1)
    ) / sum(sizes[1:])
    fixed = estimate_tokens(requests[0].tools) + estimate_tokens(requests[0].system)
    report.section(
        "The whole conversation",
        ["what", "value"],
        [
            ("tokens of tools and system prompt", fixed),
            ("tokens added per turn (median)", statistics.median(added) if added else None),
            ("share of input that repeats the request before, %", 100 * share),
            ("requests that do not start with the one before", broken),
            ("the same, had date and memories stood in the system prompt, %", 100 * naive),
        ],
    )
    report.aims["every request starts with the one before, byte for byte"] = broken == 0
    report.aims[f"at least {AIM_SHARE:.0%} of input tokens repeat the request before"] = (
        share >= AIM_SHARE
    )
    return report
