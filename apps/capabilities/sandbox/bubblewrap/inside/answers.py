"""Reports a tool's run: its result, or how it failed. Used within the sandboxes of both backends (E2B is given it as
text, see `e2b.answers`) and by the host; speaks Python 3.9 and imports next to nothing."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any

OWN_FOLDER = os.path.dirname(os.path.abspath(__file__))
TRACEBACK_FRAMES = 12
TRACEBACK_LENGTH = 4000


def checked(result: object, limit: int) -> dict[str, Any]:
    """The answer for what `run(args)` returned."""
    if not isinstance(result, str):
        message = (
            f"run(args) must return text (str), not {type(result).__name__}. Use json.dumps for data."
        )
        return {"code": "bad_result", "message": message}
    size = len(result.encode("utf-8", "replace"))
    if size > limit:
        message = f"The result has {size:,} bytes; at most {limit:,} can be returned."
        return {"code": "bad_result", "message": message}
    return {"result": str(result)}


def failure(error: BaseException) -> dict[str, Any]:
    """The answer for what a tool's code raised: the last lines of the traceback, without the frames of Izzy's own files."""
    try:
        code = "out_of_memory" if isinstance(error, MemoryError) else "raised"
        import traceback

        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OWN_FOLDER):
            trace = trace.tb_next
        lines = traceback.format_exception(type(error), error, trace, limit=-TRACEBACK_FRAMES)
        return {"code": code, "message": end_of("".join(lines).strip(), TRACEBACK_LENGTH)}
    except BaseException:  # noqa: BLE001  a __str__ that raises; no memory left to format it
        return {"code": "raised", "message": f"{type(error).__name__} (its text could not be made)"}


def end_of(text: str, length: int) -> str:
    """Its last characters, from the beginning of a word: half a secret could not be recognised and taken out."""
    if len(text) <= length:
        return text
    words = text[-length:].split(None, 1)
    return f"… {words[1]}" if len(words) == 2 else "…"


def flush() -> None:
    """Flushes output before the answer goes."""
    for stream in (sys.stdout, sys.stderr):
        try:  # noqa: SIM105  contextlib is not loaded
            stream.flush()
        except BaseException:  # noqa: S110, BLE001  a tool may have put anything in its place
            pass


def write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
