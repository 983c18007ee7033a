"""Processes of Izzy's that a test starts are forks of one that has loaded the libraries: that saves most of what a start costs.

Such a process has the arguments, environment, folder and descriptors it was given, reads Izzy's own modules and the settings
anew, and is a child of whoever started it, as any other. `started_for_real` in `conftest.py` is for tests of starting itself.
"""

import atexit
import gc
import importlib
import os
import pickle
import runpy
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from ctypes import CDLL, memmove, memset
from dataclasses import dataclass
from inspect import signature
from io import BufferedReader, BufferedWriter, FileIO, TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parents[1]

LIBRARIES = (
    "anthropic.resources.beta",
    "anthropic.resources.messages",
    "channels.generic.websocket",
    "cryptography.fernet",
    "django.contrib.admin.options",
    "django.contrib.auth.hashers",
    "django.contrib.auth.password_validation",
    "django.contrib.postgres.fields",
    "django.contrib.sessions.backends.base",
    "django.contrib.staticfiles.storage",
    "django.core.management.base",
    "django.db.backends.sqlite3.base",
    "django.db.migrations.executor",
    "django.db.models.sql.compiler",
    "django.forms",
    "django.middleware.csrf",
    "django.template.loader",
    "django.test",
    "django.views.generic",
    "dotenv",
    "httpx2",
    "jinja2",
    "jsonschema",
    "latex2mathml.converter",
    "lxml.html",
    "markdown_it",
    "mcp.server.streamable_http_manager",
    "mdit_py_plugins.footnote",
    "nh3",
    "numpy",
    "packaging.requirements",
    "PIL.Image",
    "prometheus_client",
    "psycopg",
    "pydantic.json_schema",
    "pydantic.type_adapter",
    "pydantic.types",
    "pygments.formatters",
    "re2",
    "requests",
    "rest_framework.exceptions",
    "rest_framework.serializers",
    "rich.progress",
    "rich.table",
    "servestatic",
    "sqlparse",
    "stopwordsiso",
    "tokenizers",
    "uvicorn.main",
    "uvicorn.protocols.http.httptools_impl",
    "uvicorn.protocols.websockets.websockets_sansio_impl",
    "uvloop",
    "yaml",
)
"""Those that take long to load and read no settings meanwhile."""

SUPERVISES = "serve"
"""The command that starts others of Izzy's, which must be its children: it gets a source of its own."""

PR_SET_CHILD_SUBREAPER = 36
PID = struct.Struct("i")
ROOM = " " * 500
LARGEST = 1 << 20  # bytes of a request

executed = subprocess.Popen._execute_child  # type: ignore[attr-defined]
parameters = signature(executed)
source: "Source | None" = None


@dataclass(frozen=True, slots=True)
class Request:
    """All that a process begins with. Its descriptors travel beside: the three standard ones, then those of `kept`."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    kept: Sequence[int]
    new_session: bool
    group: int


class Source:
    """A process that has loaded LIBRARIES and forks. It ends when whoever made it does."""

    def __init__(self, ours: socket.socket) -> None:
        self.settings = interpreter_settings(os.environ)  # those it was itself started with
        self.network = network()
        self._socket, self._lock, self._libc = ours, threading.Lock(), CDLL(None)

    def fork(self, request: Request, descriptors: Sequence[int]) -> int:
        """Returns the number of a new process, a child of this one."""
        with self._lock:
            self._libc.prctl(PR_SET_CHILD_SUBREAPER, 1)
            try:
                socket.send_fds(self._socket, [pickle.dumps(request)], descriptors)
                answer = self._socket.recv(PID.size)
            finally:
                self._libc.prctl(PR_SET_CHILD_SUBREAPER, 0)
        if not answer:
            raise OSError("the process that forks is gone")
        return int(PID.unpack(answer)[0])


def install() -> None:
    """From now on this process starts commands of Izzy's as forks."""
    global source
    # As `apps.search` does before it loads numpy, and without settings: what would read them must not be loaded.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    environment.pop("DJANGO_SETTINGS_MODULE", None)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        subprocess.Popen(
            [sys.executable, "-c", "from tests.forks import main; main()", str(theirs.fileno()), ROOM],
            cwd=ROOT,
            env=environment,
            pass_fds=[theirs.fileno()],
            process_group=0,
        )
    source = Source(ours)
    subprocess.Popen._execute_child = started  # type: ignore[attr-defined]


def started(process: "subprocess.Popen[Any]", *values: Any) -> None:
    """In the place of Popen's own, which it asks to do all that is not a plain start of a command of Izzy's."""
    given = parameters.bind(process, *values).arguments
    if source is None or (request := request_for(given, source)) is None:
        executed(process, *values)
        return
    ends = [given[name] for name in ("p2cread", "c2pwrite", "errwrite")]
    standard = [number if end == -1 else end for number, end in enumerate(ends)]
    process.pid = source.fork(request, [*standard, *request.kept])
    process._child_created = True  # type: ignore[attr-defined]
    names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
    process._close_pipe_fds(*(given[name] for name in names))  # type: ignore[attr-defined]


def request_for(given: Mapping[str, Any], source: Source) -> Request | None:
    """The process that Popen was asked for, None where a fork would not be the same."""
    command = [] if isinstance(given["args"], str | bytes | os.PathLike) else list(given["args"])
    folder = Path(given["cwd"] or Path.cwd())
    environment = os.environ if given["env"] is None else given["env"]
    asked = (given["executable"], given["preexec_fn"], given["gid"], given["gids"], given["uid"])
    if (
        command[:1] != [sys.executable]
        or not (command[1:3] == ["-m", "uvicorn"] or (folder / command[1]) == ROOT / "manage.py")
        or folder != ROOT
        or any(value is not None for value in asked)
        or given["umask"] != -1
        or given["shell"]
        or not given["close_fds"]
        or interpreter_settings(environment) != source.settings
        or network() != source.network
    ):
        return None
    return Request(
        command[1:],
        dict(environment),
        [int(number) for number in given["pass_fds"]],
        bool(given["start_new_session"]),
        os.getpgrp() if given["process_group"] == -1 else given["process_group"],
    )


def interpreter_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that Python reads as it starts, but for the one that a fork can make up for."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(("PYTHON", "LC_", "LANG")) and name != "PYTHONUNBUFFERED"
    }


def network() -> str:
    """The one that this thread is in: a test of several hosts has some of its own."""
    return os.readlink("/proc/thread-self/ns/net")


def serve(asked: socket.socket) -> NoReturn:
    """Forks a process for each request, until whoever asks is gone."""
    while True:
        message, received, _, _ = socket.recv_fds(asked, LARGEST, 64)
        if not message:
            os._exit(0)
        said, say = os.pipe()
        between = os.fork()
        if not between:
            # As it ends, its child becomes one of the process that asked: the nearest that takes orphans in.
            if child := os.fork():
                os.write(say, PID.pack(child))
                os._exit(0)
            become(pickle.loads(message), received)
        os.waitpid(between, 0)
        asked.send(os.read(said, PID.size))
        for number in (said, say, *received):
            os.close(number)


def become(request: Request, received: Sequence[int]) -> NoReturn:
    """Makes a process just forked the one that the request asks for. Never returns."""
    if request.new_session:
        os.setsid()
    else:
        os.setpgid(0, request.group)
    wanted = [0, 1, 2, *request.kept]
    free = max(*received, *wanted) + 1
    for place, number in enumerate(received, free):
        os.dup2(number, place)
    for place, number in enumerate(wanted, free):
        os.dup2(place, number)
    close_all_but(wanted)
    show_command([sys.executable, *request.arguments])
    os.environ.clear()
    os.environ.update(request.environment)
    open_standard_streams()
    if request.arguments[1:2] == [SUPERVISES]:
        fork_source()
    end(run(request.arguments))


def show_command(words: Sequence[str]) -> None:
    """Lists of processes show this command from now on, in the place of the source's, whose last argument made room."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    begin, end = (int(fields[number - 3]) for number in (48, 49))  # as proc(5) counts them
    shown = b"\0".join(map(os.fsencode, words))[: end - begin - 1]
    memset(begin, 0, end - begin)
    memmove(begin, shown, len(shown))


def close_all_but(kept: Sequence[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with suppress(OSError):  # that of the list itself
                os.close(int(name))


def open_standard_streams() -> None:
    """As Python itself does: what was read ahead or is buffered in those before belongs to another process."""
    direct = bool(os.environ.get("PYTHONUNBUFFERED"))
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        before: TextIOWrapper = getattr(sys, f"__{name}__")
        raw = FileIO(number, mode, closefd=False)
        binary = BufferedReader(raw) if mode == "r" else raw if direct else BufferedWriter(raw)
        stream = TextIOWrapper(
            binary,
            before.encoding,
            before.errors,
            line_buffering=name == "stderr" or raw.isatty(),
            write_through=direct,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def fork_source() -> None:
    """Gives this process a source of its own, before it has loaded anything of Izzy's."""
    global source
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    if os.fork():
        theirs.close()
        source = Source(ours)
        return
    os.setpgid(0, 0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    close_all_but([0, 1, 2, theirs.fileno()])
    serve(theirs)


def run(arguments: Sequence[str]) -> int:
    """Returns the status with which Python would end; what it would print then is printed."""
    sys.argv = list(arguments)
    try:
        if arguments[0] == "-m":
            sys.argv = list(arguments[1:])
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        traceback.print_exc()
        return -signal.SIGINT
    except BaseException:  # noqa: BLE001  as Python itself
        traceback.print_exc()
        return 1
    return 0


def end(status: int) -> NoReturn:
    """As Python does at its end, but for taking itself apart, which takes a tenth of a second and is seen by nobody."""
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    if status < 0:
        signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status & 0xFF)


def main() -> NoReturn:
    """The process of a source: its argument is the descriptor over which it is asked."""
    gc.disable()
    for library in LIBRARIES:
        importlib.import_module(library)
    gc.freeze()
    gc.enable()
    sys.path[0] = str(ROOT)  # as of a script that lies there
    subprocess.Popen._execute_child = started  # type: ignore[attr-defined]
    serve(socket.socket(fileno=int(sys.argv[1])))
