"""The program that runs a tool at E2B, and its answer behind a mark."""

import json
from functools import cache
from pathlib import Path
from typing import Any

from apps.core.text import storable

from ..base import ErrorCode, Output, RunError
from ..bubblewrap.inside import answers
from ..bubblewrap.inside.answers import end_of

MESSAGE_CHARS = 4_000
ANSWERED = ("raised", "out_of_memory", "bad_result", "timed_out")
"""The codes that `inside` knows."""
ESCAPED, SLACK = 6, 65_536
"""An answer is JSON in ASCII: a letter may take six signs; and a little around it."""
SHARED = "from apps.capabilities.sandbox.bubblewrap.inside.answers import checked, failure, flush, write_all\n"
FUTURE = "from __future__ import annotations\n"


@cache
def inside_script() -> str:
    """The text of `inside.py`; the module that it shares with the local sandbox stands where it imports from it."""
    own = Path(__file__).with_name("inside.py").read_text(encoding="utf-8")
    shared = Path(answers.__file__).read_text(encoding="utf-8")
    before, importing, after = own.partition(SHARED)
    if not importing:
        raise ValueError("inside.py imports nothing of what is shared")
    return before + shared.partition(FUTURE)[2] + after


class MarkedOutput:
    """Standard output of a capability: what stands behind the mark is its answer, never its output.

    The mark is random, so nothing that is printed, however it looks, is taken for one by accident. A tool that searches its
    memory for it answers in its own words, which is all that an answer ever is.
    """

    def __init__(self, output: Output, mark: str, result_bytes: int) -> None:
        self._output = output
        self._mark = f"{mark} "
        self._held = ""
        self._answer: list[str] | None = None
        self._left = ESCAPED * result_bytes + SLACK

    def feed(self, text: str) -> None:
        if self._answer is None:
            free, found, text = (self._held + text).partition(self._mark)
            if found:
                self._held, self._answer = "", []
            else:  # a mark may come in pieces: what could be its beginning waits for the rest
                sizes = range(min(len(free), len(self._mark) - 1), 0, -1)
                waits = next((size for size in sizes if free.endswith(self._mark[:size])), 0)
                free, self._held = free[: len(free) - waits], free[len(free) - waits :]
            self._print(free)
        if self._answer is not None and self._left >= 0:
            self._left -= len(text)
            self._answer.append(text)
            if self._left < 0:
                self._answer = []
                self._output.flooded()

    def finish(self) -> dict[str, Any] | None:
        """The answer, None where there is none."""
        self._print(self._held)
        try:
            found = json.loads("".join(self._answer or []))
        except (ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def _print(self, text: str) -> None:
        self._output.feed("stdout", text.encode("utf-8", "replace"))


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
