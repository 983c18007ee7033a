"""Processes in which jobs run: limited, and without the descriptors that lead to the host."""

from __future__ import annotations

import os
import resource
import sys

from .files import HOME
from .guarding import set_dumpable

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable

LAYER = "/opt/deps"
OWN_FOLDER = "/opt/izzy"
OWN_PACKAGE = __name__.partition(".")[0]


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
    """A process as a tool expects it: lines of output are seen as they are printed, its own folder and its requirements can
    be imported, and none of what serves it here, whose names it may use itself."""
    set_dumpable(True)
    for name in [name for name in sys.modules if name.partition(".")[0] == OWN_PACKAGE]:
        del sys.modules[name]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr]
    sys.path.remove(OWN_FOLDER)
    sys.path.insert(0, HOME)
    if os.path.isdir(LAYER):
        sys.path.append(LAYER)
    sys.argv[:] = ["main.py"]
