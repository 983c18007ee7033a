"""Processes in which jobs run: limited, and without the descriptors that lead to the host."""

from __future__ import annotations

import os
import resource
import sys

from .files import HOME

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LAYER = "/opt/deps"
OWN_FOLDER = "/opt/izzy"
TRACEBACK_FRAMES = 12
TRACEBACK_LENGTH = 4000


def in_child(descriptors: list[int], limits: dict[str, int], work: Callable[[], None]) -> None:
    """The rest of this process's life. It closes the descriptors, which lead to the host, before the work."""
    status = 1
    try:
        for descriptor in descriptors:
            os.close(descriptor)
        set_limits(limits)
        work()
        status = 0
    finally:
        os._exit(status)


def set_limits(limits: dict[str, int]) -> None:
    for name, value in (
        ("RLIMIT_AS", limits["address_space"]),
        ("RLIMIT_FSIZE", limits["file"]),
        ("RLIMIT_NOFILE", limits["open_files"]),
        ("RLIMIT_NPROC", limits["processes"]),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_MSGQUEUE", 0),
        ("RLIMIT_MEMLOCK", 65536),
    ):
        resource.setrlimit(getattr(resource, name), (value, value))
    resource.setrlimit(resource.RLIMIT_CPU, (limits["cpu"], limits["cpu"] + 1))


def execute(argv: list[str]) -> None:
    import _signal  # type: ignore[import-not-found]

    for number in (_signal.SIGPIPE, _signal.SIGXFSZ):  # Python ignores them, programs do not expect that
        _signal.signal(number, _signal.SIG_DFL)
    os.execv(argv[0], argv)  # noqa: S606


def prepare_python() -> None:
    """Lines of output are seen as they are printed; the tool's own folder and its requirements can be imported."""
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr]
    sys.path.remove(OWN_FOLDER)
    sys.path.insert(0, HOME)
    if os.path.isdir(LAYER):
        sys.path.append(LAYER)
    sys.argv[:] = ["main.py"]


def flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:  # noqa: SIM105  contextlib is not loaded
            stream.flush()
        except Exception:  # noqa: S110, BLE001  a tool may have put anything in its place
            pass


def failure(error: BaseException) -> dict[str, Any]:
    try:
        code = "out_of_memory" if isinstance(error, MemoryError) else "raised"
        return {"code": code, "message": traceback_tail(error)}
    except BaseException:  # noqa: BLE001  a __str__ that raises; no memory left to format it
        return {"code": "raised", "message": f"{type(error).__name__} (its text could not be made)"}


def traceback_tail(error: BaseException) -> str:
    """The last lines, without the frames of Izzy's own files."""
    import traceback

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(OWN_FOLDER):
        trace = trace.tb_next
    lines = traceback.format_exception(type(error), error, trace, limit=-TRACEBACK_FRAMES)
    return end_of("".join(lines).strip(), TRACEBACK_LENGTH)


def end_of(text: str, length: int) -> str:
    """Its last characters, from the beginning of a word: half a secret could not be recognised and taken out."""
    if len(text) <= length:
        return text
    words = text[-length:].split(None, 1)
    return f"… {words[1]}" if len(words) == 2 else "…"
