"""Search on PostgreSQL beside search on SQLite in a process of its own, and beside the bare statement: in turn, so that all see
the same minutes of the machine."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from uuid import UUID

from django.conf import settings
from django.db import connection

from apps.search.backends import backend
from apps.search.index import cache
from apps.search.selectors import search
from benchmarks._bare_postgresql import BarePostgreSQL, server_cpu, server_process
from benchmarks._beside import checkout_at
from benchmarks.report import Report, timed

ROUNDS = 5
HELD, HELD_CPU = "search, stems held", "search, stems held: CPU here and in the server"
SQLITE, SQLITE_CPU = "search on SQLite, stems held", "search on SQLite, stems held: CPU"
NEW, NEW_CPU = (
    "search, stems not asked before, none repeated",
    "search, stems not asked before: CPU here and in the server",
)
GIN = "bare GIN statement for the same stems"


@dataclass
class Costs:
    """Milliseconds of each call by step: of questions whose stems are held the best of some rounds."""

    times: dict[str, list[float]] = field(default_factory=dict)

    def add(self, step: str, took: float) -> None:
        self.times.setdefault(step, []).append(took)

    def p50(self, step: str) -> float:
        return median(self.times[step])

    def add_to(self, report: Report, beside: "Costs | None", size: int, others: str) -> None:
        """The table of one size, and whether limits were kept; `beside` are the costs with the notes of others in the tables."""
        columns = ["what", "alone", *([f"{others} beside", "ratio"] if beside else [])]
        section = report.section(
            f"{size:,} notes on PostgreSQL beside SQLite (milliseconds, p50)", columns
        )
        for step in (HELD, SQLITE, NEW, GIN, HELD_CPU, SQLITE_CPU, NEW_CPU):
            more = [beside.p50(step), beside.p50(step) / self.p50(step)] if beside else []
            section.add(step, self.p50(step), *more)
        for costs, where in ((self, ""), (beside, f", {others} beside")):
            if costs is None:
                continue
            ratio = costs.p50(HELD) / costs.p50(SQLITE)
            report.aims[f"7. {HELD}, at most 1.5 × SQLite's at {size:,}{where} ({ratio:.2f} ×)"] = (
                ratio <= 1.5
            )
            limit = costs.p50(GIN) + 2 * costs.p50(HELD)
            report.aims[
                f"7. {NEW}, at most the bare GIN statement + 2 × the same with stems held at {size:,}{where} "
                f"({costs.p50(NEW):.2f} of {limit:.2f} ms)"
            ] = costs.p50(NEW) <= limit
            if size <= 10_000:
                report.aims[
                    f"7. {NEW_CPU}, at most 10 ms at {size:,}{where} ({costs.p50(NEW_CPU):.2f} ms)"
                ] = costs.p50(NEW_CPU) <= 10
        if beside is not None:
            for step in (HELD, NEW):
                ratio = beside.p50(step) / self.p50(step)
                report.aims[
                    f"7. {step}: {others} beside, at most 1.3 × alone at {size:,} ({ratio:.2f} ×)"
                ] = ratio <= 1.3


def measured(user_id: UUID, asked: Sequence[str], new: Sequence[str], *, size: int) -> Costs:
    """`asked` are questions that SQLite's process asks too; `new` ones have no stem in common."""
    costs = Costs()
    _measure_new(costs, user_id, new)
    for question in asked:
        search(user_id, question)
    with checkout_at(Path(settings.BASE_DIR), size, len(asked), server="") as sqlite:
        for number, question in enumerate(asked):
            here = [_costs(lambda question=question: search(user_id, question)) for _ in range(ROUNDS)]  # type: ignore[misc]
            there = [sqlite.costs("search", number) for _ in range(ROUNDS)]
            for (step, step_cpu), rounds in (((HELD, HELD_CPU), here), ((SQLITE, SQLITE_CPU), there)):
                costs.add(step, min(wall for wall, _ in rounds))
                costs.add(step_cpu, min(cpu for _, cpu in rounds))
    return costs


def _measure_new(costs: Costs, user_id: UUID, new: Sequence[str]) -> None:
    head = backend.head(user_id)
    assert head is not None
    cache.forget()
    search(user_id, "warm the matrix")
    with BarePostgreSQL() as bare:
        for _ in range(10):  # plans are kept from some calls on, as on every connection
            bare.matching(head.owner, "warm the matrix")
            search(user_id, "nothing-of-this-is-there")
        for number, question in enumerate(new):
            steps: list[Callable[[], None]] = [
                lambda question=question: _add_new(costs, user_id, question),  # type: ignore[misc]
                lambda question=question: costs.add(  # type: ignore[misc]
                    GIN, timed(lambda: bare.matching(head.owner, question))[1]
                ),
            ]
            for step in steps[:: 1 if number % 2 else -1]:  # whoever is first warms the pages
                step()


def _add_new(costs: Costs, user_id: UUID, question: str) -> None:
    wall, cpu = _costs(lambda: search(user_id, question))
    costs.add(NEW, wall)
    costs.add(NEW_CPU, cpu)


def _costs(call: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of the call, and of CPU that it took here and in the server's process."""
    connection.ensure_connection()
    file = server_process(connection.connection) if connection.vendor == "postgresql" else None
    before = time.process_time() * 1000 + server_cpu(file)
    wall = timed(call)[1]
    return wall, time.process_time() * 1000 + server_cpu(file) - before
