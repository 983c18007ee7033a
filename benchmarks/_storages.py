"""Search on PostgreSQL beside search on SQLite in a process of its own, and beside the bare statement: in turn, so that all see
the same minutes of the machine.

Beside the time that passes stands the CPU that a step takes, here and in the server's process for this connection: on a
machine that does other things too, a process that waits for another one loses its turn, and the time says little.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection

from apps.search.backends import backend
from apps.search.index import cache
from apps.search.index.rows import UserRows
from apps.search.selectors import search
from benchmarks._bare_postgresql import BarePostgreSQL, server_cpu, server_process
from benchmarks._beside import checkout_at
from benchmarks.report import Report, timed

ROUNDS = 5
LOADS = 7
HELD, SQLITE = "search, stems held", "search on SQLite, stems held"
NEW, GIN = "search, stems not asked before, none repeated", "bare GIN statement for the same stems"
LOAD, AGGREGATE = "load the index", "bare string_agg of the vectors"


class Cost(NamedTuple):
    """Milliseconds that passed, and of CPU."""

    wall: float
    cpu: float


@dataclass
class Costs:
    """The costs of each call by step: of questions whose stems are held the least of some rounds."""

    of_server: bool  # whether the CPU is also that of the server, which is on this machine
    steps: dict[str, list[Cost]] = field(default_factory=dict)

    def add(self, step: str, *rounds: Cost) -> None:
        least = Cost(min(each.wall for each in rounds), min(each.cpu for each in rounds))
        self.steps.setdefault(step, []).append(least)

    def p50(self, step: str) -> Cost:
        costs = self.steps[step]
        return Cost(median(each.wall for each in costs), median(each.cpu for each in costs))

    def judged(self, step: str) -> float:
        """Milliseconds of CPU, where all of it is known, else those that passed."""
        return self.p50(step).cpu if self.of_server else self.p50(step).wall


def measured(user_id: UUID, asked: Sequence[str], new: Sequence[str], *, size: int) -> Costs:
    """`asked` are questions that SQLite's process asks too; `new` ones have no stem in common."""
    connection.ensure_connection()
    costs = Costs(server_process(connection.connection) is not None)
    with BarePostgreSQL() as bare:
        _measure_load(costs, user_id, bare)
        _measure_new(costs, user_id, new, bare)
    for question in asked:
        search(user_id, question)
    with checkout_at(Path(settings.BASE_DIR), size, len(asked), server="") as sqlite:
        for number, question in enumerate(asked):
            costs.add(HELD, *(_cost(partial(search, user_id, question)) for _ in range(ROUNDS)))
            costs.add(SQLITE, *(Cost(*sqlite.costs("search", number)) for _ in range(ROUNDS)))
    return costs


def _measure_load(costs: Costs, user_id: UUID, bare: BarePostgreSQL) -> None:
    head = backend.head(user_id)
    assert head is not None
    for _ in range(LOADS):
        costs.add(LOAD, _cost(lambda: UserRows(head, backend.read_all(head))))
        costs.add(AGGREGATE, _cost(partial(bare.vectors, user_id.hex), bare.connection))


def _measure_new(costs: Costs, user_id: UUID, new: Sequence[str], bare: BarePostgreSQL) -> None:
    head = backend.head(user_id)
    assert head is not None
    cache.forget()
    for _ in range(10):  # a connection keeps its plans from some calls on
        bare.matching(head.owner, "warm the matrix")
        search(user_id, "nowhere")
    for number, question in enumerate(new):
        steps: list[Callable[[], None]] = [
            lambda asked=question: costs.add(NEW, _cost(partial(search, user_id, asked))),  # type: ignore[misc]
            lambda asked=question: costs.add(  # type: ignore[misc]
                GIN, _cost(partial(bare.matching, head.owner, asked), bare.connection)
            ),
        ]
        for step in steps[:: 1 if number % 2 else -1]:  # whoever is first warms the pages
            step()


def _cost(call: Callable[[], object], database: Any = None) -> Cost:
    """Of the call, which asks this connection, or Django's."""
    file = server_process(database or connection.connection)
    before = time.process_time() * 1000 + server_cpu(file)
    wall = timed(call)[1]
    return Cost(wall, time.process_time() * 1000 + server_cpu(file) - before)


def add_to(report: Report, alone: Costs, beside: Costs | None, size: int, others: str) -> None:
    """The table of one size, and whether limits were kept; in `beside` the notes of others lie in the same tables."""
    columns = ["what", "alone", "CPU", *([f"{others} beside", "CPU, beside"] if beside else [])]
    section = report.section(f"{size:,} notes on PostgreSQL beside SQLite (milliseconds, p50)", columns)
    for step in alone.steps:
        section.add(step, *alone.p50(step), *(beside.p50(step) if beside else ()))
    for costs, where in ((alone, f"at {size:,}"), (beside, f"at {size:,}, {others} beside")):
        if costs is None:
            continue
        for step, floor, limit in ((HELD, SQLITE, 1.5), (LOAD, AGGREGATE, 1.3)):
            ratio = costs.judged(step) / costs.judged(floor)
            report.aims[f"7. {step}: at most {limit} × {floor} {where} ({ratio:.2f} ×)"] = ratio <= limit
        took, limit = costs.judged(NEW), costs.judged(GIN) + 2 * costs.judged(HELD)
        aim = f"7. {NEW}: at most the bare GIN statement + 2 × with stems held {where}"
        report.aims[f"{aim} ({took:.2f} of {limit:.2f} ms)"] = took <= limit
        if size <= 10_000:
            report.aims[f"7. {NEW}: at most 10 ms of CPU {where} ({took:.2f} ms)"] = took <= 10
    if beside is not None:
        for step in (HELD, NEW):
            ratio = beside.judged(step) / alone.judged(step)
            aim = f"7. {step}: {others} beside, at most 1.3 × alone at {size:,} ({ratio:.2f} ×)"
            report.aims[aim] = ratio <= 1.3
