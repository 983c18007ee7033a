"""What the sandbox says, in the words that every backend uses."""

from typing import Any

from ..base import ErrorCode, RunError
from ..output import end_of, storable


class InstallError(Exception):
    """The message is for people."""


class Problem:
    """Why a call did not end as it should; None where it did."""

    error: RunError | None = None


def timed_out(seconds: float) -> RunError:
    return RunError(ErrorCode.TIMED_OUT, f"It did not finish within {seconds:g} seconds.")


def answer_error(answer: dict[str, Any] | None) -> RunError | None:
    if answer is None:
        return RunError(ErrorCode.SANDBOX_FAILED, "The sandbox ended without an answer. Run it again.")
    if "result" in answer:
        return None
    return RunError(ErrorCode(answer["code"]), storable(str(answer["message"])))


def code_error(error: Any) -> RunError:
    code = ErrorCode.OUT_OF_MEMORY if error.name == "MemoryError" else ErrorCode.RAISED
    said = storable(str(error.traceback or f"{error.name}: {error.value}"))
    return RunError(code, end_of(said, 4_000))
