"""Runs benchmarks in two checkouts by turns and prints what each figure was in one and in the other.

    python scripts/compare_benchmarks.py OLD [--rounds 3] "latency --sizes 1000" chat sandbox …

OLD is another checkout whose `.venv` is set up; the one compared with it is this. Each benchmark runs once in each of the two
before it runs again, so that a machine that grows slower does so for both. Printed are the medians over the rounds of each
number that both print under the same table, row and column, and the second as a share of the first.
"""

import json
import os
import shlex
import statistics
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
Figure = tuple[str, str, str]
"""Table, row, column."""


def main() -> None:
    parser = ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("old", type=Path)
    parser.add_argument("benchmarks", nargs="+", metavar="BENCHMARK")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for benchmark in given.benchmarks:
        seen: dict[Path, list[dict[Figure, float]]] = {given.old.resolve(): [], HERE: []}
        for turn in range(given.rounds):
            for folder in seen if turn % 2 == 0 else reversed(seen):
                seen[folder].append(dict(figures(run(folder, shlex.split(benchmark)))))
        print(f"\n# {benchmark}\n")
        print_medians(*(list(rounds) for rounds in seen.values()))


def run(folder: Path, arguments: list[str]) -> dict[str, Any]:
    """The report of one run as JSON."""
    # Settings of either checkout's own .env would be compared as well.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("IZZY_")}
    python = str(folder / ".venv" / "bin" / "python")
    done = subprocess.run(
        [python, "manage.py", "benchmark", *arguments, "--json", "-"],
        cwd=folder,
        env=environment | {"IZZY_ENV_FILE": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        sys.exit(f"{folder}: {shlex.join(arguments)} failed\n{done.stdout}\n{done.stderr}")
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def figures(report: dict[str, Any]) -> Iterator[tuple[Figure, float]]:
    """The numbers of its tables; a row is called by its cells that are words, or by its first."""
    for section in report["sections"]:
        for row in section["rows"]:
            cells = list(row.items())
            words = [str(value) for _, value in cells if isinstance(value, str)] or [str(cells[0][1])]
            for column, value in cells:
                if isinstance(value, int | float) and not isinstance(value, bool):
                    yield (section["title"], " ".join(words), column), float(value)


def print_medians(old: list[dict[Figure, float]], new: list[dict[Figure, float]]) -> None:
    title = ""
    for figure in old[0]:
        befores = [one[figure] for one in old if figure in one]
        nows = [one[figure] for one in new if figure in one]
        if not nows:
            continue
        if figure[0] != title:
            title = figure[0]
            print(f"## {title}")
        before, now = statistics.median(befores), statistics.median(nows)
        share = f"{now / before:.2f}" if before else "–"
        print(f"{figure[1][:70]:70} {figure[2][:28]:28} {before:12.3f} {now:12.3f} {share:>6}")


if __name__ == "__main__":
    main()
