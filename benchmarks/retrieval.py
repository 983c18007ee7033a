"""Recall of search and of context blocks on a labelled data set, beside plain BM25 and plain cosine.

The data set is a JSON list of conversations: `messages` (external_id, session, speaker, text, created_at) and
`questions` (question, category, evidence: external_ids). Each conversation is taken in through `/ingest/` as a user of
its own and asked through `/search/` and `/context/`, with the embedder in use and no model.
"""

import json
import statistics
import time
from argparse import ArgumentParser
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError
from django.test import Client

from apps.search.selectors import search
from benchmarks._baselines import bm25_order, cosine_order
from benchmarks._scratch import api_client, make_user, scratch_database
from benchmarks.report import Report

DEPTHS = (1, 5, 10, 25, 50)
BUDGET = 500
BATCH = 1000
AIM = 0.84


@dataclass
class Tally:
    """Sums over questions of one method."""

    recall: dict[int, list[float]] = field(default_factory=lambda: {depth: [] for depth in DEPTHS})
    reciprocal: list[float] = field(default_factory=list)
    evidence: list[float] = field(default_factory=list)

    def add(self, found: list[str], wanted: set[str]) -> None:
        for depth in DEPTHS:
            self.recall[depth].append(len(wanted & set(found[:depth])) / len(wanted))
        ranks = [rank for rank, name in enumerate(found, 1) if name in wanted]
        self.reciprocal.append(1 / ranks[0] if ranks else 0.0)

    def row(self) -> list[float | None]:
        shares = [100 * statistics.fmean(self.recall[depth]) for depth in DEPTHS]
        evidence = 100 * statistics.fmean(self.evidence) if self.evidence else None
        return [*shares, statistics.fmean(self.reciprocal), evidence]


@dataclass
class Run:
    """What all conversations together gave."""

    methods: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    categories: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    conversations: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    timings: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    most_tokens: int = 0
    messages: int = 0


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--dataset", required=True, type=Path, metavar="FILE")
    parser.add_argument(
        "--limit", type=int, default=0, help="ask only so many questions of each conversation"
    )
    parser.add_argument(
        "--together",
        action="store_true",
        help="give all conversations to one user: the others' messages distract",
    )


def run(options: dict[str, Any]) -> Report:
    conversations = read_dataset(options["dataset"])
    outcome = Run()
    with scratch_database():
        users = {}
        for number, conversation in enumerate(conversations):
            name = "everyone" if options["together"] else f"user{number}"
            if name not in users:
                user = make_user(name)
                users[name] = (user.pk, api_client(user))
            ingest(users[name][1], conversation, number, outcome)
        for number, conversation in enumerate(conversations):
            user_id, client = users["everyone" if options["together"] else f"user{number}"]
            _ask_all(user_id, client, conversation, number, options["limit"], outcome)
    return _report(outcome, options)


def read_dataset(path: Path) -> list[dict[str, Any]]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, list) or not all(
            entry["messages"] and "questions" in entry for entry in data
        ):
            raise CommandError(f"{path} must be a list of conversations with messages and questions.")
        if not any(entry["questions"] for entry in data):
            raise CommandError(f"{path} asks nothing: its conversations have no questions.")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{path} is no such data set: {error}") from error
    return list(data)


def ingest(client: Client, conversation: dict[str, Any], number: int, outcome: Run) -> None:
    sessions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for message in conversation["messages"]:
        sessions[str(message["session"])].append(
            {
                "speaker": message["speaker"],
                "content": message["text"],
                "external_id": f"{number}/{message['external_id']}",
                "created_at": message["created_at"],
            }
        )
    outcome.messages += len(conversation["messages"])
    for session, messages in sessions.items():
        for start in range(0, len(messages), BATCH):
            body = {
                "session": f"{number}/{session}",
                "messages": messages[start : start + BATCH],
                "extract": False,
            }
            began = time.perf_counter()
            _post(client, "ingest", body, 202)
            outcome.timings["ingest, per message"].append(
                (time.perf_counter() - began) * 1000 / len(messages[start : start + BATCH])
            )


def _ask_all(
    user_id: Any, client: Client, conversation: dict[str, Any], number: int, limit: int, outcome: Run
) -> None:
    messages = conversation["messages"]
    names = [f"{number}/{message['external_id']}" for message in messages]
    texts = [f"{message['speaker']}: {message['text']}" for message in messages]
    questions = [question for question in conversation["questions"] if question["evidence"]]
    for question in questions[: limit or None]:
        wanted = {f"{number}/{name}" for name in question["evidence"]}
        found, packed = _ask(user_id, client, question["question"], outcome)
        tallies = (
            outcome.methods["Izzy"],
            outcome.categories[question["category"]],
            outcome.conversations[str(conversation.get("id", number))],
        )
        for tally in tallies:
            tally.add(found, wanted)
            tally.evidence.append(len(wanted & packed) / len(wanted))
        for method, order in (("plain BM25", bm25_order), ("plain cosine", cosine_order)):
            began = time.perf_counter()
            best = order(texts, question["question"])
            outcome.timings[f"{method}, in process"].append((time.perf_counter() - began) * 1000)
            outcome.methods[method].add([names[row] for row in best[: DEPTHS[-1]]], wanted)


def _ask(user_id: Any, client: Client, question: str, outcome: Run) -> tuple[list[str], set[str]]:
    """External ids that search found, best first, and those inside the context block."""
    began = time.perf_counter()
    answer = _post(client, "search", {"query": question, "top_k": DEPTHS[-1]}, 200)
    middle = time.perf_counter()
    packed = _post(client, "context", {"query": question, "budget_tokens": BUDGET}, 200)
    after = time.perf_counter()
    search(user_id, question, top_k=10)
    end = time.perf_counter()
    outcome.timings["/search/, 50 results"].append((middle - began) * 1000)
    outcome.timings["/context/, 500 tokens"].append((after - middle) * 1000)
    outcome.timings["search in process, 10 results"].append((end - after) * 1000)
    outcome.most_tokens = max(outcome.most_tokens, packed["tokens"])
    return [hit["external_id"] for hit in answer["results"]], {
        item["external_id"] for item in packed["items"]
    }


def _post(client: Client, path: str, body: dict[str, Any], status: int) -> Any:
    answer = client.post(f"/api/v1/{path}/", json.dumps(body), content_type="application/json")
    if answer.status_code != status:
        raise CommandError(f"/{path}/ answered {answer.status_code}: {answer.content[:500]!r}")
    return answer.json()


def _report(outcome: Run, options: dict[str, Any]) -> Report:
    own = outcome.methods["Izzy"]
    report = Report(
        "retrieval",
        settings={
            "dataset": options["dataset"].name,
            "messages": outcome.messages,
            "questions": len(own.reciprocal),
            "embedder": settings.IZZY_EMBEDDER,
            "users": "one for all conversations" if options["together"] else "one per conversation",
            "largest context block, tokens": outcome.most_tokens,
        },
    )
    columns = [*(f"recall@{depth}" for depth in DEPTHS), "MRR", f"evidence@{BUDGET}"]
    for title, key, tallies in (
        ("Recall in %, all questions", "method", outcome.methods),
        ("Izzy by category", "category", outcome.categories),
        ("Izzy by conversation", "conversation", outcome.conversations),
    ):
        section = report.section(title, [key, "questions", *columns])
        for name, tally in tallies.items():
            section.add(name, len(tally.reciprocal), *tally.row())
    section = report.section("Milliseconds per query", ["path", "p50", "p95"])
    for name, times in sorted(outcome.timings.items()):
        section.add(name, statistics.median(times), sorted(times)[int(len(times) * 0.95)])
    report.aims = {
        f"recall@10 at least {AIM:.0%}": statistics.fmean(own.recall[10]) >= AIM,
        f"evidence@{BUDGET} at least {AIM:.0%}": statistics.fmean(own.evidence) >= AIM,
    }
    return report
