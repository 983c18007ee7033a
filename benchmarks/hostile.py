"""What texts made to take long cost the regular expressions and parsers that meet text from outside.

Each reads adversarial texts of n, 2n and 4n characters, 4n being the longest that reaches it; the baseline is ordinary prose of
4n characters. Processor time, the least of three calls.
"""

import math
import signal
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from benchmarks._hostile_subjects import ORDINARY, Subject, subjects
from benchmarks.report import Report

COMMON = (
    "a", "A", "1", " ", "\t", "\n", ".", ",", "-", "_", "'", '"', "`", "/", "\\", "<", ">", "(", ")", "[", "]", "{", "}", "*", "#", "|", "@", ":",
    "&", "=", "+", "~", "!", "?", "a ", "a.", "a\n", " a", "1 ", "\n ", "é", "’", "“", "日", "a\u0301", "\u2003", "😀", ORDINARY,
)  # fmt: skip
TRIED = 4  # texts of each that are measured: those that cost most at n characters
CALLS = 3
LONG_ENOUGH = (
    0.05  # seconds that a call is repeated: the clock of processor time may go in steps of a hundredth
)
PATIENCE = 5.0  # seconds of processor time for one call
MOST_GROWTH = 1.3  # n log n doubled twice comes to 1.1 to 1.2; the rest is noise of the machine
UNMEASURABLE = 0.002  # seconds at 4n characters below which growth is chance


class _TooLong(Exception):
    pass


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--only", default="", metavar="TEXT", help="those with this in their name")


def run(options: dict[str, Any]) -> Report:
    report = Report("hostile", settings={"seconds of patience": PATIENCE})
    section = report.section(
        "Milliseconds of processor time",
        ["what", "4n", "text", "n", "2n ", "4n ", "exponent", "ordinary, 4n"],
    )
    grown, slow = [], []
    for subject in (each for each in subjects() if options["only"] in each.name):
        text, times = _worst(subject)
        exponent = _exponent(times)
        ordinary = _cost(subject, ORDINARY, subject.limit)
        section.add(
            subject.name,
            subject.limit,
            repr(text)[:24],
            *(each * 1000 for each in times),
            exponent,
            ordinary * 1000,
        )
        grown += [subject.name] if exponent > MOST_GROWTH else []
        slow += [subject.name] if math.isinf(times[-1]) else []
    report.aims[f"none grows faster than n log n{_named(grown)}"] = not grown
    report.aims[f"none takes longer than {PATIENCE:.0f} s{_named(slow)}"] = not slow
    return report


def _named(names: list[str]) -> str:
    return f" (but {', '.join(names)})" if names else ""


def _worst(subject: Subject) -> tuple[str, list[float]]:
    """The text that costs most at 4n characters of those that cost most at n, with its costs at n, 2n and 4n."""
    sizes = [subject.limit // 4, subject.limit // 2, subject.limit]
    units = dict.fromkeys((*COMMON, *subject.units))
    dear = sorted(units, key=lambda unit: _cost(subject, unit, sizes[0]), reverse=True)[:TRIED]
    found = {unit: [_cost(subject, unit, size, CALLS) for size in sizes] for unit in dear}
    worst = max(found, key=lambda unit: (_exponent(found[unit]) > MOST_GROWTH, found[unit][-1]))
    return worst, found[worst]


def _exponent(times: list[float]) -> float:
    """1 where cost grows as the text does, 2 where by its square; 0 for what is too quick to tell."""
    if times[-1] < UNMEASURABLE:
        return 0.0
    return math.log(times[-1] / max(times[0], 1e-6), 4)


def _cost(subject: Subject, unit: str, size: int, calls: int = 1) -> float:
    """Seconds of processor time; infinite beyond `PATIENCE`."""
    room = size - len(subject.before) - len(subject.after)
    text = subject.before + unit * (room // len(unit)) + subject.after
    least = math.inf
    for _ in range(calls):
        began, times, spent = time.process_time(), 0, 0.0
        while times == 0 or (calls > 1 and spent < LONG_ENOUGH and times < 500):
            try:
                with _patience():
                    subject.call(text)
            except _TooLong:
                return math.inf
            times, spent = times + 1, time.process_time() - began
        least = min(least, spent / times)
    return least


@contextmanager
def _patience() -> Iterator[None]:
    def ended(number: int, frame: FrameType | None) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGVTALRM, ended)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
