"""Milliseconds of search, context, save and opening at several sizes, each beside its floor in the same run.

Made-up notes of one user, alone and with another user's beside them, in a database of the benchmark's own. Floors are
bare numpy and bare sqlite3 over the same rows. Only ratios of one run mean much: machines differ, and so do minutes.
"""

import os
import resource
import subprocess
import sys
import time
from argparse import ArgumentParser
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from django.utils import timezone

from apps.accounts.services import token_create
from apps.core.ids import uuid7
from apps.memory.notes.creation import memory_bulk_create, memory_create
from apps.memory.notes.fields import MemoryDraft
from apps.search.backends import backend
from apps.search.documents import Document, Source
from apps.search.embedders.engines import embedder_for
from apps.search.index import cache
from apps.search.index.rows import UserRows
from apps.search.ranking.relevance import best_places
from apps.search.selectors import context, search
from apps.search.services import documents_index
from benchmarks._baselines import BareSQLite, Timing, measure, product
from benchmarks._scratch import Corpus, make_user, scratch_database
from benchmarks._server import Caller, web_server
from benchmarks.report import Report, Section

SIZES = (1_000, 10_000, 100_000)
OTHERS = 100_000
BATCH = 1000
SINGLES = 60


@dataclass
class Bench:
    """One size of one database, and what came out."""

    size: int
    path: Path
    corpus: Corpus
    user: Any
    questions: list[str]
    figures: dict[str, tuple[Timing, float | None]] = field(default_factory=dict)

    @property
    def user_id(self) -> UUID:
        return UUID(str(self.user.pk))

    def note(self, name: str, timing: Timing, floor: float | None = None) -> None:
        """Keep a figure with its floor in milliseconds."""
        self.figures[name] = (timing, floor)

    def ratio(self, name: str) -> float:
        timing, floor = self.figures[name]
        return timing.p50 / floor if floor else float("nan")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), metavar="NOTES")
    parser.add_argument(
        "--others", type=int, default=OTHERS, metavar="NOTES", help="another user's notes beside"
    )
    parser.add_argument("--quick", action="store_true", help="leave out what starts new processes")
    parser.add_argument("--no-http", action="store_true", help="leave out the web server")


def run(options: dict[str, Any]) -> Report:
    report = Report(
        "latency", settings={"sizes": options["sizes"], "others": options["others"], "embedder": "static"}
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
            if options["others"]:
                _fill_others(options["others"], corpus)
                _measure_search(bench, f", {options['others']:,} of another user beside")
            _table(report, bench)
            _aims(report, bench, options)
    report.settings["largest process, MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return report


def _fill(bench: Bench) -> None:
    """The notes, saved as the API's bulk path does; then some one by one."""
    bare = BareSQLite(bench.path.with_name("bare.sqlite3"))
    sample = bench.corpus.notes(BATCH)
    floor = sorted(bare.insert_bulk(sample) for _ in range(5))[2]
    times = []
    for start in range(0, bench.size, BATCH):
        drafts: list[MemoryDraft] = [
            {"content": text} for text in bench.corpus.notes(min(BATCH, bench.size - start))
        ]
        began = time.perf_counter()
        memory_bulk_create(user_id=bench.user_id, drafts=drafts)
        times.append((time.perf_counter() - began) * 1000 / len(drafts))
    middle = sorted(times)[len(times) // 2]
    bench.note("save in bulk, per note", Timing(middle, sorted(times)[int(len(times) * 0.95)]), floor)
    single = bare.insert_single(sample[:SINGLES])
    texts = bench.corpus.notes(SINGLES)
    saved = measure(lambda n: memory_create(user_id=bench.user_id, content=texts[n]), SINGLES)
    bench.note("save one note", saved, single.p50)
    bare.close()


def _fill_others(number: int, corpus: Corpus) -> None:
    user_id, now = make_user("bob").pk, timezone.now()
    for start in range(0, number, BATCH):
        documents_index(
            user_id=user_id,
            documents=[
                Document(source=Source.MEMORY, source_id=uuid7(), text=text, happened_at=now)
                for text in corpus.notes(min(BATCH, number - start))
            ],
        )


def _measure_search(bench: Bench, beside: str) -> None:
    bare = BareSQLite(bench.path)
    asked = bench.questions
    search(bench.user_id, asked[0])
    with cache.index_open(bench.user_id) as opened:
        assert opened is not None
        head, rows = opened
        matrix = rows.vectors[: rows.size]
        vectors = np.stack([embedder_for("static").embed_query(text) for text in asked])
        least = product(matrix, vectors)
        ours = measure(lambda n: best_places(matrix @ vectors[n], rows, 10))
        bench.note(f"vector part{beside}", ours, least.p50)
    words = bare.full_text(head.owner, asked)
    floor = least.p50 + words.p50
    cache.forget()
    search(bench.user_id, "warm the matrix")
    bench.note(
        f"search, words not asked before{beside}", measure(lambda n: search(bench.user_id, asked[n])), floor
    )
    bench.note(f"search{beside}", measure(lambda n: search(bench.user_id, asked[n])), floor)
    bench.note(f"context of 500 tokens{beside}", measure(lambda n: context(bench.user_id, asked[n])), floor)
    bare.close()


def _measure_opening(bench: Bench, *, quick: bool) -> None:
    bare = BareSQLite(bench.path)
    floor = bare.load(bench.user_id.hex)
    head = backend.head(bench.user_id)
    assert head is not None
    loaded = measure(lambda _: UserRows(head, backend.read_all(head)), 5)
    bench.note("load the index", loaded, floor.p50)
    bench.note("check of an unchanged index", measure(lambda _: backend.head(bench.user_id)), loaded.p50)
    bench.note("search after another process added a note", _search_after_writes(bench), None)
    if not quick:
        _measure_cold(bench, floor.p50)
    bare.close()


def _measure_cold(bench: Bench, load: float) -> None:
    """The first answer: in a server that runs but has not looked at this user yet, and in a new process."""
    imports = _python("import numpy") - _python("pass")

    def open_and_ask(number: int) -> None:
        cache.forget()
        search(bench.user_id, bench.questions[number])

    bench.note("open to first answer, server running", measure(open_and_ask, 5), imports + load)
    script = (
        "import django; django.setup(); from apps.search.selectors import search; from uuid import UUID; "
        f"search(UUID('{bench.user_id}'), {bench.questions[0]!r})"
    )
    fresh = measure(lambda _: _python(script, bench.path.parent), 3)
    bench.note("open to first answer, new process with Django", fresh, _python("pass") + imports + load)


def _search_after_writes(bench: Bench) -> Timing:
    """The next search after one note was added: it takes in that row alone."""
    search(bench.user_id, bench.questions[0])
    times = []
    for text in bench.corpus.notes(20):
        memory_create(user_id=bench.user_id, content=text)
        times.append(measure(lambda n: search(bench.user_id, bench.questions[n]), 1).p50)
    return Timing(sorted(times)[len(times) // 2], max(times))


def _measure_http(bench: Bench) -> None:
    _, token = token_create(user=bench.user, name="latency", scopes=("read",))
    with web_server(bench.path.parent) as port:
        caller = Caller(port, token)
        asked = bench.questions
        for question in asked:
            caller.post("/api/v1/search/", {"query": question})
            caller.post("/api/v1/hello/", {"query": question})
        hello = measure(lambda n: caller.post("/api/v1/hello/", {"query": asked[n]}))
        found = measure(lambda n: caller.post("/api/v1/search/", {"query": asked[n]}))
        caller.close()
    bench.note("hello view over HTTP", hello)
    bench.note("/search/ over HTTP", found, hello.p50 + bench.figures["search"][0].p50)


def _python(code: str, data_dir: Path | None = None) -> float:
    """Milliseconds of a new interpreter that runs the code."""
    environment = dict(os.environ) | ({"IZZY_DATA_DIR": str(data_dir)} if data_dir else {})
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    return (time.perf_counter() - began) * 1000


def _table(report: Report, bench: Bench) -> None:
    section: Section = report.section(
        f"{bench.size:,} notes (milliseconds; index in memory {cache.held_bytes() / 1e6:,.0f} MB)",
        ["what", "p50", "p95", "floor p50", "ratio"],
    )
    for name, (timing, floor) in bench.figures.items():
        section.add(name, timing.p50, timing.p95, floor, timing.p50 / floor if floor else None)


def _aims(report: Report, bench: Bench, options: dict[str, Any]) -> None:
    size = f"at {bench.size:,}"
    limits = {
        "vector part": ("1. vector part at most 1.3 × the bare product", 1.3),
        "search": ("2. search at most 2 × (bare product + bare full text)", 2.0),
        "/search/ over HTTP": ("3. /search/ at most 1.5 × (hello view + search)", 1.5),
        "load the index": ("4. load at most 1.3 × the bare loop", 1.3),
        "check of an unchanged index": ("4. check at most 0.01 × load", 0.01),
        "open to first answer, server running": ("5. first answer at most 1.5 × (import numpy + load)", 1.5),
        "save in bulk, per note": ("6. bulk save at most 3 × bare SQLite and full text", 3.0),
        "save one note": ("6. one save at most 12 × bare SQLite and full text", 12.0),
    }
    for name, (aim, limit) in limits.items():
        if name in bench.figures:
            ratio = bench.ratio(name)
            report.aims[f"{aim} {size} ({ratio:.2f} ×)"] = ratio <= limit
    beside = f"search, {options['others']:,} of another user beside"
    if beside in bench.figures:
        growth = bench.figures[beside][0].p50 / bench.figures["search"][0].p50
        report.aims[f"search does not cost more with another user's notes beside {size} ({growth:.2f} ×)"] = (
            growth <= 1.3
        )
