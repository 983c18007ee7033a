"""Time and queries of the memory's pages: a user with many notes beside one without any, in one run.

Requests go through the whole stack of pages, by turns for both users, and each is measured in processor time and by the clock. The
aims are ratios of the two users' p95 and a number of queries, so that a page may not grow with the notes.
"""

import gc
import random
import time
from argparse import ArgumentParser
from collections.abc import Iterable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.agent.models import ModelCall
from apps.core.ids import uuid7
from apps.memory.models import (
    Kind,
    Memory,
    MemoryEdge,
    MemoryRevision,
    MemoryUse,
    Origin,
    Status,
    Tier,
    Trust,
)
from apps.memory.notes.creation import memory_bulk_create
from apps.memory.summary.keeping import summary_keep
from benchmarks._scratch import BATCH, Corpus, make_user, scratch_database
from benchmarks.report import Report, Timing, timed

NOTES = 100_000
ROUNDS = 40
DAYS = 1_200
TAGS = 400
LIMIT = 3.0
MAX_QUERIES = 25
PAGES = (
    ("overview", "/memory/"),
    ("browse", "/memory/browse/"),
    ("browse, page 50", "/memory/browse/?page=50"),
    ("browse, one kind", "/memory/browse/?kind=fact"),
    ("tags", "/memory/tags/"),
    ("search", "/memory/browse/?q={question}"),
    ("review", "/memory/review/"),
    ("timeline", "/memory/timeline/"),
    ("timeline, when learned", "/memory/timeline/?by=learned"),
    ("graph", "/memory/graph/"),
    ("quality", "/memory/quality/"),
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--notes", type=int, default=NOTES, metavar="NOTES")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument(
        "--only", nargs="+", metavar="PAGE", help="names of pages, as the table has them"
    )


def run(options: dict[str, Any]) -> Report:
    report = Report("pages", settings={"notes": options["notes"], "rounds": options["rounds"]})
    with scratch_database():
        many, none = make_user("alice"), make_user("bob")
        began = time.perf_counter()
        fill(many, options["notes"])
        report.settings["seconds to fill"] = round(time.perf_counter() - began)
        report.settings["seconds to keep the summary"] = _summarised(many, none)
        gc.collect()
        gc.freeze()  # as web processes do: a full collection would hold up whichever request it meets
        questions = Corpus(seed=3).questions(options["rounds"])
        wanted = [page for page in PAGES if not options["only"] or page[0] in options["only"]]
        rows = [(name, *_measured(address, many, none, questions)) for name, address in wanted]
    section = report.section(
        f"{options['notes']:,} notes beside none (milliseconds)",
        ["page", "queries", "CPU p50", "CPU p95", "none: CPU p50", "none: CPU p95", "ratio p95", "ratio of the clock's p95"],
    )  # fmt: skip
    for name, queries, own, other, own_clock, other_clock in rows:
        ratio = own.p95 / other.p95
        section.add(
            name, queries, own.p50, own.p95, other.p50, other.p95, ratio, own_clock.p95 / other_clock.p95
        )
        report.aims[f"{name}: at most {LIMIT:g} times"] = ratio <= LIMIT
        report.aims[f"{name}: at most {MAX_QUERIES} queries"] = queries <= MAX_QUERIES
    return report


def _summarised(*users: User) -> float:
    """Seconds of the worker's work for the pages."""
    return round(sum(timed(partial(summary_keep, user.pk))[1] for user in users) / 1000, 2)


def _measured(
    address: str, many: User, none: User, questions: list[str]
) -> tuple[int, Timing, Timing, Timing, Timing]:
    """Queries of the first request of the many; then processor time and time by the clock of both users."""
    clients = [Client(SERVER_NAME="localhost") for _ in (many, none)]
    for client, user in zip(clients, (many, none), strict=True):
        client.force_login(user)
    for client in clients:
        _get(client, address, questions[0])
    queries: list[str] = []
    with connection.execute_wrapper(partial(_noted, queries)):
        _get(clients[0], address, questions[0])
    cpu: tuple[list[float], list[float]] = ([], [])
    clock: tuple[list[float], list[float]] = ([], [])
    for question in questions:
        for place, client in enumerate(clients):
            began, begun = time.process_time(), time.perf_counter()
            _get(client, address, question)
            cpu[place].append((time.process_time() - began) * 1000)
            clock[place].append((time.perf_counter() - begun) * 1000)
    return len(queries), *(Timing.of(times) for times in (*cpu, *clock))  # type: ignore[return-value]


def _noted(queries: list[str], execute: Any, sql: str, *more: Any) -> Any:
    queries.append(sql)
    return execute(sql, *more)


def _get(client: Client, address: str, question: str) -> None:
    answer = client.get(address.format(question=question))
    if answer.status_code != 200:
        raise RuntimeError(f"{address} answered {answer.status_code}")


def fill(user: User, number: int) -> None:
    """That many notes of all sorts over DAYS days: tags, links, changes, what waits, what was used, what reading cost."""
    chance, corpus, now = random.Random(5), Corpus(seed=4), timezone.now()
    tags = [f"tag {place}" for place in range(TAGS)]
    keys: list[UUID] = []
    for texts in corpus.batches(number):
        drafts = [
            {
                "content": text,
                "kind": chance.choice(Kind.values),
                "tier": chance.choice(Tier.values),
                "tags": chance.sample(tags, chance.choice((0, 0, 1, 2))),
                "category": "" if chance.random() < 0.9 else chance.choice(("work", "home", "health")),
            }
            for text in texts
        ]
        keys += [note.pk for note in memory_bulk_create(user_id=user.pk, drafts=drafts)]
    notes = Memory.objects.for_user(user)
    changed = []
    for place, note in enumerate(notes.iterator(BATCH)):
        note.created_at = now - timedelta(days=DAYS * (1 - place / number) + chance.random())
        note.updated_at = note.created_at
        note.origin = chance.choice((Origin.USER, Origin.EXTRACTION, Origin.API))
        note.trust = Trust.UNTRUSTED if chance.random() < 0.05 else Trust.USER
        note.status = Status.SUPERSEDED if chance.random() < 0.02 else Status.ACTIVE
        note.use_count = note.access_count = chance.choice((0, 0, 0, 1, 2, 9))
        if chance.random() < 0.3:
            note.valid_from = note.created_at - timedelta(days=chance.randrange(4_000))
        changed.append(note)
    for note in chance.sample(changed, min(60, number // 20)):
        note.status = Status.PENDING
    columns = ["created_at", "updated_at", "origin", "trust", "status", "use_count", "access_count", "valid_from"]  # fmt: skip
    Memory.everything.bulk_update(changed, columns, batch_size=300)
    _others(user, changed, chance)


def _others(user: User, notes: list[Memory], chance: random.Random) -> None:
    relations = ["related"] * 6 + ["elaborates"] * 2 + ["supersedes"]
    pairs = {(chance.randrange(len(notes)), min(len(notes) - 1, chance.randrange(len(notes)) // 3)) for _ in range(len(notes) // 5)}  # fmt: skip
    MemoryEdge.objects.bulk_create(
        (
            MemoryEdge(
                user=user,
                source=notes[one],
                target=notes[two],
                relation="contradicts" if place < 30 else chance.choice(relations),
            )
            for place, (one, two) in enumerate(sorted(pairs))
            if one != two
        ),
        batch_size=BATCH,
    )
    some = chance.sample(notes, len(notes) // 10)
    _insert(MemoryRevision, (
        MemoryRevision(user=user, memory=note, version=1, content=f"Before. {note.content}", state={}, action="updated", actor="user", created_at=note.created_at + timedelta(days=1))
        for note in some
    ))  # fmt: skip
    _insert(MemoryUse, (
        MemoryUse(id=uuid7(), user=user, memory=note, used_in="surfaced", question="What then?", reason="It fits.")
        for note in some
    ))  # fmt: skip
    _insert(ModelCall, (
        ModelCall(user=user, model="m", endpoint="custom", purpose="extraction", input_tokens=900, output_tokens=80, cost_usd="0.002", created_at=note.created_at)
        for note in some
    ))  # fmt: skip


def _insert(model: Any, rows: Iterable[Any]) -> None:
    model.objects.bulk_create(rows, batch_size=BATCH)
