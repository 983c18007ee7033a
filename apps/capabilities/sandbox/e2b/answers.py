"""A sandbox's answers, in the words that every backend uses."""

from typing import Any

from ..base import ErrorCode, RunError
from ..output import end_of, storable

MESSAGE_CHARS = 4_000
VALUE_CHARS = 20_000
ANSWERED = ("raised", "out_of_memory", "bad_result", "timed_out")
"""The codes that `inside` knows."""


class InstallError(Exception):
    """The message is for people."""


class Problem:
    """Why a call did not end as it should; None where it did."""

    error: RunError | None = None


def timed_out(seconds: float) -> RunError:
    return RunError(ErrorCode.TIMED_OUT, f"It did not finish within {seconds:g} seconds.")


def answer_error(answer: dict[str, Any] | None) -> RunError | None:
    """The error of a run. A tool that searches its memory can find the mark: the answer may be its own, and is
    believed no further than a tool's is."""
    if answer is None:
        return RunError(ErrorCode.SANDBOX_FAILED, "The sandbox ended without an answer. Run it again.")
    if isinstance(answer.get("result"), str):
        return None
    code, message = answer.get("code"), answer.get("message")
    if code not in ANSWERED or not isinstance(message, str):
        return RunError(ErrorCode.BAD_RESULT, "The tool's answer could not be read.")
    return RunError(ErrorCode(code), end_of(storable(message), MESSAGE_CHARS))


def value_text(text: str | None) -> str:
    """The repr of a cell's last expression, which may be of any length."""
    shown = storable(text or "")
    return shown if len(shown) <= VALUE_CHARS else f"{shown[:VALUE_CHARS]}… ({len(shown):,} characters)"


def code_error(error: Any) -> RunError:
    code = ErrorCode.OUT_OF_MEMORY if error.name == "MemoryError" else ErrorCode.RAISED
    said = storable(str(error.traceback or f"{error.name}: {error.value}"))
    return RunError(code, end_of(said, MESSAGE_CHARS))
