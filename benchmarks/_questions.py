"""Labelled questions: reading a data set, taking its conversations in, asking, and counting what was found."""

import json
import statistics
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError
from django.test import Client

from apps.search.selectors import search
from apps.search.text.analysis import document_terms

DEPTHS = (1, 5, 10, 25, 50)
BUDGET = 500
BATCH = 1000


@dataclass
class Tally:
    """Sums over questions of one method."""

    recall: dict[int, list[float]] = field(default_factory=lambda: {depth: [] for depth in DEPTHS})
    reciprocal: list[float] = field(default_factory=list)
    evidence: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)

    def add(self, found: list[str], wanted: set[str]) -> None:
        for depth in DEPTHS:
            self.recall[depth].append(len(wanted & set(found[:depth])) / len(wanted))
        ranks = [rank for rank, name in enumerate(found, 1) if name in wanted]
        self.reciprocal.append(1 / ranks[0] if ranks else 0.0)

    def row(self) -> list[float | None]:
        shares = [100 * statistics.fmean(self.recall[depth]) for depth in DEPTHS]
        packed = [
            100 * statistics.fmean(one) if one else None for one in (self.evidence, self.whole, self.answered)
        ]
        return [*shares, statistics.fmean(self.reciprocal), *packed]

    def add_block(self, block: "Block", wanted: Mapping[str, str], answer: str) -> None:
        """Count what of the evidence (text by external id) and of the answer stands in a context block."""
        self.evidence.append(len(wanted.keys() & block.names) / len(wanted))
        self.whole.append(statistics.fmean(" ".join(text.split()) in block.text for text in wanted.values()))
        if words := set(document_terms(answer)[1]):
            self.answered.append(len(words & block.words) / len(words))


@dataclass(frozen=True, slots=True)
class Block:
    """A context block: whose messages stand in it, its text, its stems."""

    names: set[str]
    text: str
    words: set[str]


@dataclass
class Run:
    """What all conversations together gave."""

    methods: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    categories: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    conversations: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    timings: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    most_tokens: int = 0
    messages: int = 0


def questions_of(conversation: dict[str, Any], limit: int = 0) -> list[dict[str, Any]]:
    """Those whose evidence is known, the first so many (0: all)."""
    return [question for question in conversation["questions"] if question["evidence"]][: limit or None]


def evidence_of(conversation: dict[str, Any], number: int, question: dict[str, Any]) -> dict[str, str]:
    """The text of each message that answers, by external id; "" for one that there is not."""
    texts = {message["external_id"]: message["text"] for message in conversation["messages"]}
    return {f"{number}/{name}": texts.get(name, "") for name in question["evidence"]}


def read_dataset(path: Path) -> list[dict[str, Any]]:
    """The conversations of a file. Raises CommandError for what is no such data set."""
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
    """Take a conversation in through `/ingest/`; `number` keeps external ids of several apart."""
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


def ask(user_id: Any, client: Client, question: str, outcome: Run) -> tuple[list[str], Block]:
    """External ids that search found, best first, and the context block."""
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
    names = {item["external_id"] for item in packed["items"]}
    block = Block(names, " ".join(packed["text"].split()), set(document_terms(packed["text"])[1]))
    return [hit["external_id"] for hit in answer["results"]], block


def _post(client: Client, path: str, body: dict[str, Any], status: int) -> Any:
    answer = client.post(f"/api/v1/{path}/", json.dumps(body), content_type="application/json")
    if answer.status_code != status:
        raise CommandError(f"/{path}/ answered {answer.status_code}: {answer.content[:500]!r}")
    return answer.json()
