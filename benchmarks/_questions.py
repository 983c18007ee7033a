"""Labelled questions: reading a data set, taking its conversations in, asking, and counting what was found."""

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from django.core.management.base import CommandError
from django.test import Client
from django.utils import timezone

from apps.search.backends import Head
from apps.search.index.cache import index_open
from apps.search.index.rows import UserRows
from apps.search.ranking.query import Query, query_prepare, understand
from apps.search.ranking.signals import Scores, score_rows
from apps.search.selectors import EVERYTHING, search
from apps.search.text.analysis import document_terms
from benchmarks.report import timed

DEPTHS = (1, 5, 10, 25, 50)
BUDGET = 500
BATCH = 1000
PART = "#part"
"""Behind it, in an external id, stands the number of a part of the message whose id stands before it."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Question:
    """`evidence` are the texts, one a part, of each message that answers, by external id; none for one that there is not."""

    text: str
    category: str
    evidence: Mapping[str, tuple[str, ...]]
    answer: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages as `/ingest/` takes them, by session, and the questions whose evidence is known."""

    name: str
    sessions: Mapping[str, list[dict[str, Any]]]
    questions: list[Question]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [message for session in self.sessions.values() for message in session]


@dataclass(frozen=True, slots=True)
class Block:
    """A context block: whose messages stand in it, its text, its stems."""

    names: set[str]
    text: str
    words: set[str]

    def holds(self, texts: tuple[str, ...]) -> bool:
        """Whether all of the texts stand in it whole; False for none."""
        return bool(texts) and all(" ".join(text.split()) in self.text for text in texts)


@dataclass
class Tally:
    """Sums over questions of one method."""

    recall: dict[int, list[float]] = field(default_factory=lambda: {depth: [] for depth in DEPTHS})
    reciprocal: list[float] = field(default_factory=list)
    evidence: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)

    def add(self, found: list[str], question: Question, block: Block | None = None) -> None:
        """Count what of the evidence was found, and what of it and of the answer stands in a context block.

        A message that was sent in parts is found when any of them is, and whole when all of them are.
        """
        wanted = question.evidence.keys()
        found = [message_of(name) for name in found]
        for depth in DEPTHS:
            self.recall[depth].append(len(wanted & set(found[:depth])) / len(wanted))
        ranks = [rank for rank, name in enumerate(found, 1) if name in wanted]
        self.reciprocal.append(1 / ranks[0] if ranks else 0.0)
        if block is not None:
            self.evidence.append(len(wanted & set(map(message_of, block.names))) / len(wanted))
            self.whole.append(statistics.fmean(map(block.holds, question.evidence.values())))
            if words := set(document_terms(question.answer)[1]):
                self.answered.append(len(words & block.words) / len(words))

    def row(self) -> list[float | None]:
        shares = [100 * statistics.fmean(self.recall[depth]) for depth in DEPTHS]
        packed = [
            100 * statistics.fmean(one) if one else None
            for one in (self.evidence, self.whole, self.answered)
        ]
        return [*shares, statistics.fmean(self.reciprocal), *packed]


@dataclass
class Run:
    """Adds up what all conversations gave."""

    methods: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    categories: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    conversations: dict[str, Tally] = field(default_factory=lambda: defaultdict(Tally))
    timings: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    most_tokens: int = 0
    messages: int = 0

    def timed(self, name: str, call: Callable[[], T], *, share: int = 1) -> T:
        """Note the milliseconds of a call that does something `share` times."""
        result, took = timed(call)
        self.timings[name].append(took / share)
        return result


def message_of(external_id: str) -> str:
    """The external id of the message that a passage is of, which may be a part of it."""
    return external_id.partition(PART)[0]


def read_dataset(path: Path, limit: int = 0) -> list[Conversation]:
    """The conversations of a file, with the first `limit` questions of each (0: all).

    Raises CommandError for what is no such data set.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, list) or not all(
            entry["messages"] and "questions" in entry for entry in data
        ):
            raise CommandError(f"{path} must be a list of conversations with messages and questions.")
        if not any(entry["questions"] for entry in data):
            raise CommandError(f"{path} asks nothing: its conversations have no questions.")
        return [_conversation(entry, number, limit) for number, entry in enumerate(data)]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CommandError(f"{path} is no such data set: {error}") from error


def _conversation(entry: dict[str, Any], number: int, limit: int) -> Conversation:
    """One entry of a data set; its `number` keeps external ids and sessions of several apart."""
    sessions: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for message in entry["messages"]:
        sessions[f"{number}/{message['session']}"].append(
            {
                "speaker": message["speaker"],
                "content": message["text"],
                "external_id": f"{number}/{message['external_id']}",
                "created_at": message["created_at"],
            }
        )
    texts = {message["external_id"]: message["text"] for message in entry["messages"]}
    questions = [
        Question(
            text=question["question"],
            category=question["category"],
            evidence={
                f"{number}/{name}": (texts[name],) if name in texts else ()
                for name in question["evidence"]
            },
            answer=str(question.get("answer") or ""),
        )
        for question in entry["questions"]
        if question["evidence"]
    ]
    return Conversation(str(entry.get("id", number)), sessions, questions[: limit or None])


def ingest(client: Client, conversation: Conversation, outcome: Run) -> None:
    """Take a conversation in through `/ingest/`."""
    for session, messages in conversation.sessions.items():
        outcome.messages += len(messages)
        for start in range(0, len(messages), BATCH):
            batch = messages[start : start + BATCH]
            body = {"session": session, "messages": batch, "extract": False}
            outcome.timed(
                "ingest, per message", partial(_post, client, "ingest", body, 202), share=len(batch)
            )


def ask(user_id: UUID, client: Client, question: str, outcome: Run) -> tuple[list[str], Block]:
    """External ids that search found, best first, and the context block."""
    wanted, budget = (
        {"query": question, "top_k": DEPTHS[-1]},
        {"query": question, "budget_tokens": BUDGET},
    )
    answer = outcome.timed("/search/, 50 results", lambda: _post(client, "search", wanted, 200))
    packed = outcome.timed("/context/, 500 tokens", lambda: _post(client, "context", budget, 200))
    outcome.timed("search in process, 10 results", lambda: search(user_id, question, top_k=10))
    outcome.most_tokens = max(outcome.most_tokens, packed["tokens"])
    names = {item["external_id"] for item in packed["items"]}
    block = Block(names, " ".join(packed["text"].split()), set(document_terms(packed["text"])[1]))
    return [hit["external_id"] for hit in answer["results"]], block


def _post(client: Client, path: str, body: dict[str, Any], status: int) -> Any:
    answer = client.post(f"/api/v1/{path}/", json.dumps(body), content_type="application/json")
    if answer.status_code != status:
        raise CommandError(f"/{path}/ answered {answer.status_code}: {answer.content[:500]!r}")
    return answer.json()


@contextmanager
def scored(user_id: UUID, text: str) -> Iterator[tuple[Head, UserRows, Query, Scores]]:
    """A question as search takes it apart, and its scores of all rows of a user."""
    query_prepare(user_id, text)
    now = timezone.now()
    with index_open(user_id) as opened:
        assert opened is not None
        head, rows = opened
        query = understand(text, rows, head, now=now)
        yield head, rows, query, score_rows(rows, query, rows.allowed(EVERYTHING, now=now))
