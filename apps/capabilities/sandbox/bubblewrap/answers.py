"""Reads a runner's answers on the host; holds the limits that it is told."""

import os
import re
import signal
import time
from typing import Any

from apps.capabilities.sandbox.base import ErrorCode, Limits, RunError
from apps.capabilities.sandbox.output import Output, storable

ADDRESS_SPACE_BYTES = 4_000_000_000
OPEN_FILES = 128
MOST_PROCESSES = 4096
COUNTED_PER_NAMESPACE = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (5, 14)
"""Before that the kernel counts all of a user's processes, also those outside: there the watchdog alone counts."""
VALUE_CHARS = 20_000
VALUE_LIMIT = VALUE_CHARS + 100


def runner_limits(limits: Limits, frame_limit: int) -> dict[str, int]:
    return {
        "address_space": ADDRESS_SPACE_BYTES,
        "file": limits.file_bytes,
        "open_files": OPEN_FILES,
        "processes": limits.processes if COUNTED_PER_NAMESPACE else MOST_PROCESSES,
        "cpu": limits.cpu_seconds,
        "result": limits.result_bytes,
        "frame": frame_limit,
        "value": VALUE_CHARS,
    }


def ending(output: Output, began: float) -> dict[str, Any]:
    return {
        "stdout": output.stdout.text(),
        "stderr": output.stderr.text(),
        "duration_ms": round((time.monotonic() - began) * 1000),
    }


def answer_error(answer: dict[str, Any] | RunError) -> RunError | None:
    """The error the runner or the tool reports. Nothing in it is believed beyond its being text."""
    if isinstance(answer, RunError):
        return answer
    if "refused" in answer:
        return RunError(ErrorCode.SANDBOX_FAILED, answer_text(answer["refused"]))
    if "exit" in answer:
        return _ended_without_answer(answer["exit"])
    match answer.get("code"):
        case None:
            return None
        case "interrupted":
            return RunError(ErrorCode.RAISED, answer_text(answer.get("message")))
        case "out_of_memory" | "raised" | "bad_result" as code:
            return RunError(ErrorCode(code), answer_text(answer.get("message")))
    return RunError(ErrorCode.BAD_RESULT, "The tool's answer could not be read.")


def _ended_without_answer(code: object) -> RunError:
    if code == -signal.SIGXCPU:
        return RunError(ErrorCode.TIMED_OUT, "It used more processor time than it may.")
    if isinstance(code, int) and code < 0:
        names = {item.value: item.name for item in signal.Signals}
        what = f"was ended by {names.get(-code, f'signal {-code}')}"
    else:
        what = f"ended with exit code {code}"
    return RunError(ErrorCode.RAISED, f"The tool's process {what} before run(args) returned.")


def answer_text(value: object) -> str:
    return storable(value)[:VALUE_LIMIT] if isinstance(value, str) else ""
