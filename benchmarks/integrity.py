"""How long `check_integrity` takes over many notes, beside reading their rows and postings once and doing nothing with them."""

import resource
import time
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from django.db import connection

from apps.core.integrity import checks
from apps.core.integrity.running import examine
from apps.memory.notes.creation import memory_bulk_create
from benchmarks._scratch import BATCH, Corpus, make_user, scratch_database
from benchmarks.report import Report

SIZES = (10_000, 100_000)
READS = (
    "SELECT * FROM memory_memory",
    "SELECT * FROM search_passage",
    "SELECT * FROM search_terms_data",
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--notes", type=int, nargs="+", default=SIZES, metavar="N", help="sizes to measure"
    )


def run(options: dict[str, Any]) -> Report:
    sizes = sorted(options["notes"])
    report = Report("integrity", settings={"notes": sizes, "time": "CPU"})
    whole = report.section(
        "check_integrity (seconds of CPU)",
        ["notes", "bare read", "all checks", "ratio", "µs a note", "MB more"],
    )
    each = report.section("each check (seconds of CPU)", ["check", *(f"{size:,}" for size in sizes)])
    parts: dict[str, list[float]] = {name: [] for name, _ in checks()}
    for size in sizes:
        with scratch_database():
            user = make_user("bench")
            for batch in Corpus().batches(size):
                memory_bulk_create(user_id=user.pk, drafts=[{"content": text} for text in batch])
            bare = _cpu(_bare_read)
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            findings: list[Any] = []
            took = _cpu(lambda found=findings: found.extend(examine()))  # type: ignore[misc]
            more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            if findings:
                raise RuntimeError(f"{len(findings)} findings, first {findings[0]}")
            whole.add(size, bare, took, took / bare, took / size * 1e6, more)
            for name, check in checks():
                parts[name].append(_cpu(lambda find=check.find: list(find(None))))  # type: ignore[misc]
    for name, times in parts.items():
        each.add(name, *times)
    return report


def _bare_read() -> None:
    """All columns of the same tables, as Python values, some thousand rows at a time."""
    with connection.cursor() as cursor:
        for statement in READS:
            cursor.execute(statement)
            while cursor.fetchmany(BATCH):
                pass


def _cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
