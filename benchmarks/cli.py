"""Measures the cost of a command of the command line, from its start to its end, beside importing its HTTP client.

A real server answers on the loopback; commands and baselines run by turns, each in a process of its own.
"""

import os
import statistics
import subprocess
import sys
from argparse import ArgumentParser
from functools import partial
from typing import Any

import httpx

from benchmarks._network import WebProcess, izzy_process
from benchmarks.report import Report, Timing, timed

ROUNDS, NOTES = 20, 1000
MOST = 4.0
SEARCH = "`izzy search`"
IMPORT = "`python -c 'import httpx'`"
COMMANDS = {
    IMPORT: ["-c", "import httpx"],
    "`python -c ''`": ["-c", ""],
    "`izzy --help`": ["-m", "izzy_cli", "--help"],
    SEARCH: ["-m", "izzy_cli", "search", "note", "number", "seven"],
    "`izzy list`": ["-m", "izzy_cli", "list"],
    "`izzy save`": ["-m", "izzy_cli", "save", "A note of the benchmark's"],
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="runs of each command, by turns")


def run(options: dict[str, Any]) -> Report:
    rounds: int = options["rounds"]
    report = Report("cli", settings={"rounds": rounds, "notes": NOTES, "cores": os.cpu_count()})
    with izzy_process() as web:
        _prepare(web)
        times: dict[str, list[float]] = {name: [] for name in COMMANDS}
        for _ in range(rounds):
            for name, arguments in COMMANDS.items():
                times[name].append(timed(partial(_run, web, arguments))[1])
    section = report.section(
        "milliseconds from start to end", ["what", "median", "95th", "times the import"]
    )
    baseline = statistics.median(times[IMPORT])
    for name, measured in times.items():
        timing = Timing.of(measured)
        section.add(name, timing.p50, timing.p95, timing.p50 / baseline)
    aim = f"{SEARCH} costs at most {MOST:.0f} times {IMPORT}"
    report.aims[aim] = statistics.median(times[SEARCH]) <= MOST * baseline
    return report


def _prepare(web: WebProcess) -> None:
    """Notes to find, and a first question, with which the server loads what it needs."""
    notes = [{"content": f"Note number {number}"} for number in range(NOTES)]
    with httpx.Client(
        base_url=f"http://127.0.0.1:{web.port}/api/v1/", headers=web.headers, timeout=60
    ) as client:
        client.post("memories/bulk/", json={"memories": notes}).raise_for_status()
        client.post("search/", json={"query": "note"}).raise_for_status()


def _run(web: WebProcess, arguments: list[str]) -> None:
    environment = os.environ | {"IZZY_URL": f"http://127.0.0.1:{web.port}", "IZZY_TOKEN": web.token}
    subprocess.run([sys.executable, *arguments], env=environment, stdout=subprocess.DEVNULL, check=True)
