"""Milliseconds of search, context, save and opening at several sizes, each beside its floor in the same run.

Made-up notes of one user, alone and with another user's beside them, in a database of the benchmark's own. Floors are
bare numpy and bare sqlite3, or with DATABASE_URL bare psycopg, over the same rows. Only ratios of one run mean much: machines differ, and so do minutes.
"""

import os
import resource
import statistics
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import UUID

from django.utils import timezone

from apps.accounts.models import User
from apps.core.db.pool import database_file
from apps.core.ids import uuid7
from apps.memory.notes.creation import memory_bulk_create, memory_create
from apps.search.backends import backend
from apps.search.documents import Document, Source
from apps.search.embedders.engines import embedder_for
from apps.search.features import best_places
from apps.search.index import cache
from apps.search.index.rows import UserRows
from apps.search.selectors import context, search
from apps.search.services import documents_index
from benchmarks import _spaces, _storages
from benchmarks._baselines import bare_database, product
from benchmarks._network import connected, web_process
from benchmarks._scratch import (
    BATCH,
    Corpus,
    database_environment,
    make_token,
    make_user,
    scratch_database,
)
from benchmarks.report import Report, Timing, measure, timed

SIZES = (1_000, 10_000, 100_000)
OTHERS = 100_000
SHARE = 200
SINGLES = 60


@dataclass
class Bench:
    """One size of one database, and what came out."""

    size: int
    path: Path
    corpus: Corpus
    user: User
    questions: list[str]
    product: float = 0.0  # milliseconds of the bare matrix
    figures: dict[str, tuple[Timing, float | None]] = field(
        default_factory=dict
    )  # with their floors, in ms

    @property
    def user_id(self) -> UUID:
        return self.user.pk

    def ratio(self, name: str) -> float | None:
        timing, floor = self.figures[name]
        return timing.p50 / floor if floor else None


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="NOTES")
    parser.add_argument(
        "--others", type=int, default=OTHERS, metavar="NOTES", help="another user's notes beside"
    )
    parser.add_argument(
        "--other-users", type=int, default=1, metavar="N", help="so many users share the notes beside"
    )
    parser.add_argument("--quick", action="store_true", help="leave out what starts new processes")
    parser.add_argument(
        "--before",
        type=Path,
        metavar="FOLDER",
        help="an earlier checkout with a .venv of its own, whose search is timed in turn with this one's",
    )
    parser.add_argument("--no-http", action="store_true", help="leave out the web server")


def run(options: dict[str, Any]) -> Report:
    report = Report(
        "latency",
        settings={"sizes": options["sizes"], "others": options["others"], "embedder": "static"},
    )
    for size in options["sizes"]:
        with scratch_database() as path:
            corpus = Corpus()
            bench = Bench(size, path, corpus, make_user("alice"), corpus.questions(SINGLES))
            _fill(bench)
            _measure_search(bench, "")
            _measure_opening(bench, quick=options["quick"])
            if not options["no_http"]:
                _measure_http(bench)
            costs = _spaces.measured(
                bench.user_id, bench.questions, corpus, path, size=size, earlier=options["before"]
            )
            alone = _measure_storage(bench)
            others = _others(options)
            if options["others"]:
                _fill_others(options["others"], options["other_users"], corpus)
                _measure_search(bench, f", {others} beside")
            _report(report, bench, others)
            if alone is not None:
                beside = _measure_storage(bench) if options["others"] else None
                _storages.add_to(report, alone, beside, size, others)
            _spaces.add_to(report, costs, size, bench.product)
    report.settings["largest process, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return report


def _fill(bench: Bench) -> None:
    """The notes, saved as the API's bulk path does; then some one by one."""
    sample = bench.corpus.notes(BATCH)
    with bare_database(bench.path.with_name("bare.sqlite3")) as bare:
        floor, single = bare.insert_bulk(sample), bare.insert_single(sample[:SINGLES])
    times = []
    for batch in bench.corpus.batches(bench.size):
        save = partial(
            memory_bulk_create, user_id=bench.user_id, drafts=[{"content": text} for text in batch]
        )
        times.append(timed(save)[1] / len(batch))
    bench.figures["save in bulk, per note"] = Timing.of(times), floor
    texts = bench.corpus.notes(SINGLES)
    saved = measure(lambda n: memory_create(user_id=bench.user_id, content=texts[n]), SINGLES)
    bench.figures["save one note"] = saved, single.p50


def _others(options: dict[str, Any]) -> str:
    users = options["other_users"]
    return f"{options['others']:,} of {'another user' if users == 1 else f'{users:,} others'}"


def _fill_others(number: int, users: int, corpus: Corpus) -> None:
    """Their notes, some hundreds of each in turn, so that no user's lie together."""
    ids, now = [make_user(f"other{user}").pk for user in range(users)], timezone.now()
    turns = cycle(ids)
    for texts in corpus.batches(number):
        for start in range(0, len(texts), SHARE):
            documents = [
                Document(source=Source.MEMORY, source_id=uuid7(), text=text, happened_at=now)
                for text in texts[start : start + SHARE]
            ]
            documents_index(user_id=next(turns), documents=documents, are_new=True)


def _measure_storage(bench: Bench) -> _storages.Costs | None:
    """The costs of search on PostgreSQL beside those on SQLite; None on SQLite."""
    if database_file() is not None:
        return None
    new = bench.corpus.new_questions(SINGLES)
    return _storages.measured(bench.user_id, bench.questions, new, size=bench.size)


def _measure_search(bench: Bench, beside: str) -> None:
    asked = bench.questions
    search(bench.user_id, asked[0])
    with cache.index_open(bench.user_id) as opened:
        assert opened is not None
        head, rows = opened
        matrix = rows.vectors[: rows.size]
        vectors = embedder_for("static").embed_queries(asked)
        least = product(matrix, vectors)
        bench.product = least.p50
        ours = measure(lambda n: best_places(matrix @ vectors[n], rows.features["document"], 10))
        bench.figures[f"vector part{beside}"] = ours, least.p50
    with bare_database(bench.path) as bare:
        floor = least.p50 + bare.full_text(head.owner, asked).p50
    cache.forget()
    search(bench.user_id, "warm the matrix")
    steps: dict[str, Callable[[int], object]] = {
        "search, words not asked before": lambda n: search(bench.user_id, asked[n]),
        "search": lambda n: search(bench.user_id, asked[n]),
        "context of 500 tokens": lambda n: context(bench.user_id, asked[n]),
    }
    for name, step in steps.items():
        bench.figures[f"{name}{beside}"] = measure(step), floor


def _measure_opening(bench: Bench, *, quick: bool) -> None:
    with bare_database(bench.path) as bare:
        floor = bare.load(bench.user_id.hex).p50
    head = backend.head(bench.user_id)
    assert head is not None
    loaded = measure(lambda _: UserRows(head, backend.read_all(head)), 5)
    bench.figures["load the index"] = loaded, floor
    bench.figures["check of an unchanged index"] = (
        measure(lambda _: backend.head(bench.user_id)),
        loaded.p50,
    )
    search(bench.user_id, bench.questions[0])
    times = []
    for text in bench.corpus.notes(20):  # the next search takes in that row alone
        memory_create(user_id=bench.user_id, content=text)
        times.append(timed(partial(search, bench.user_id, bench.questions[0]))[1])
    after = Timing(statistics.median_high(times), max(times))
    bench.figures["search after another process added a note"] = after, None
    if not quick:
        _measure_cold(bench, floor)


def _measure_cold(bench: Bench, load: float) -> None:
    """The first answer: in a server that runs but has not looked at this user yet, and in a new process."""
    start = _python("pass")
    floor = _python("import numpy") - start + load

    def open_and_ask(number: int) -> None:
        cache.forget()
        search(bench.user_id, bench.questions[number])

    bench.figures["open to first answer, server running"] = measure(open_and_ask, 5), floor
    script = (
        "import django; django.setup(); from apps.search.selectors import search; from uuid import UUID; "
        f"search(UUID('{bench.user_id}'), {bench.questions[0]!r})"
    )
    fresh = measure(lambda _: _python(script, bench.path.parent), 3)
    bench.figures["open to first answer, new process with Django"] = fresh, start + floor


def _measure_http(bench: Bench) -> None:
    token, application = make_token(bench.user), "benchmarks._hello:application"
    folder = bench.path.parent
    with (
        web_process(folder, application, token=token, **database_environment(folder)) as web,
        connected(web) as ask,
    ):
        asked = bench.questions
        for question in asked:
            ask("/api/v1/search/", {"query": question})
            ask("/api/v1/hello/", {"query": question})
        hello = measure(lambda n: ask("/api/v1/hello/", {"query": asked[n]}))
        found = measure(lambda n: ask("/api/v1/search/", {"query": asked[n]}))
    bench.figures["hello view over HTTP"] = hello, None
    bench.figures["/search/ over HTTP"] = found, hello.p50 + bench.figures["search"][0].p50


def _python(code: str, data_dir: Path | None = None) -> float:
    """Milliseconds of a new interpreter that runs the code."""
    environment = dict(os.environ)
    if data_dir:
        environment |= {"IZZY_DATA_DIR": str(data_dir)} | database_environment(data_dir)
    return timed(lambda: subprocess.run([sys.executable, "-c", code], check=True, env=environment))[1]


def _report(report: Report, bench: Bench, others: str) -> None:
    section = report.section(
        f"{bench.size:,} notes (milliseconds; index in memory {cache.held_bytes() / 1e6:,.0f} MB)",
        ["what", "p50", "p95", "floor p50", "ratio"],
    )
    for name, (timing, floor) in bench.figures.items():
        section.add(name, *timing, floor, bench.ratio(name))
    size = f"at {bench.size:,}"
    limits = {
        "vector part": ("1. vector part at most 1.3 × the bare product", 1.3),
        "search": ("2. search at most 2 × (bare product + bare full text)", 2.0),
        "/search/ over HTTP": ("3. /search/ at most 1.5 × (hello view + search)", 1.5),
        "load the index": ("4. load at most 1.3 × the bare loop", 1.3),
        "check of an unchanged index": ("4. check at most 0.01 × load", 0.01),
        "open to first answer, server running": (
            "5. first answer at most 1.5 × (import numpy + load)",
            1.5,
        ),
        "save in bulk, per note": ("6. bulk save at most 3 × bare rows and full text", 3.0),
        "save one note": ("6. one save at most 12 × bare rows and full text", 12.0),
    }
    for name, (aim, limit) in limits.items():
        ratio = bench.ratio(name) if name in bench.figures else None
        if ratio is not None:
            report.aims[f"{aim} {size} ({ratio:.2f} ×)"] = ratio <= limit
    beside = f"search, {others} beside"
    if beside in bench.figures:
        growth = bench.figures[beside][0].p50 / bench.figures["search"][0].p50
        report.aims[f"search does not cost more with {others} beside {size} ({growth:.2f} ×)"] = (
            growth <= 1.3
        )
