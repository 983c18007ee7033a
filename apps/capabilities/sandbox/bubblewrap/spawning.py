"""Starts bwrap: its arguments (what a sandbox sees and what it is cut off from), its pipes, and what the host keeps of them."""

import os
import socket
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from ..base import Limits
from .prepared import Prepared

SYSTEM_FOLDERS = ("/usr/lib", "/usr/bin", "/usr/lib64", "/usr/share/zoneinfo")
LINKS = (("usr/lib", "/lib"), ("usr/lib64", "/lib64"), ("usr/bin", "/bin"), ("usr/bin", "/sbin"))
SYSTEM_PACKAGES = "/usr/lib/python3/dist-packages"
"""Hidden: a tool has its requirements and nothing that happens to be installed here."""
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PROXY = "http://127.0.0.1:3128"
LAYER = "/opt/deps"
DEVICES = (
    ("/dev/null", "/dev/null"),
    # Full reads as zeros too, and cannot be mapped as shared memory that nobody counts.
    ("/dev/full", "/dev/zero"),
    ("/dev/full", "/dev/full"),
    ("/dev/random", "/dev/random"),
    ("/dev/urandom", "/dev/urandom"),
)
"""No terminals (`--dev` would give them): the machine has some 4,000 in all."""
ISOLATION = (
    *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net"),
    *("--unshare-cgroup-try", "--as-pid-1"),
    *(
        "--disable-userns",
        "--uid",
        "1000",
        "--gid",
        "1000",
        "--hostname",
        "sandbox",
        "--cap-drop",
        "ALL",
    ),
    *("--die-with-parent", "--clearenv"),
)
PIPES = ("frames", "info", "stdout", "stderr")
START = "import sys;sys.path.insert(0,'/opt/izzy');from inside.runner import main;main()"


@dataclass(frozen=True, slots=True)
class Binding:
    """A folder of the host that the sandbox sees at `inside`."""

    outside: Path
    inside: str
    writable: bool = False


def sandbox_arguments(
    prepared: Prepared, limits: Limits, bindings: Sequence[Binding], *, proxied: bool
) -> list[str]:
    """Everything up to the command. Later mounts cover earlier ones, so the remounts come last."""
    size = str(limits.file_bytes)
    arguments = list(ISOLATION)
    for folder in SYSTEM_FOLDERS:
        if os.path.isdir(folder):
            arguments += ["--ro-bind", folder, folder]
    for target, link in LINKS:
        if os.path.isdir(f"/{target}"):
            arguments += ["--symlink", target, link]
    if os.path.isdir(SYSTEM_PACKAGES):
        arguments += ["--size", "4096", "--tmpfs", SYSTEM_PACKAGES]
    arguments += ["--ro-bind", str(prepared.inside / "etc"), "/etc"]
    arguments += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    arguments += ["--size", "4096", "--tmpfs", "/dev"]
    for outside, inside in DEVICES:
        arguments += ["--dev-bind", outside, inside]
    for place in ("/dev/shm", "/tmp", "/home/user"):  # noqa: S108  of the sandbox, not of the host
        arguments += ["--size", size, "--tmpfs", place]
    arguments += ["--remount-ro", "/dev"]
    arguments += ["--ro-bind", str(prepared.inside / "izzy"), "/opt/izzy"]
    if prepared.certificates:
        arguments += ["--ro-bind", str(prepared.certificates), CERTIFICATES]
    if prepared.interpreter.prefix:
        arguments += ["--ro-bind", str(prepared.interpreter.prefix), str(prepared.interpreter.prefix)]
    for binding in bindings:
        arguments += [
            "--bind" if binding.writable else "--ro-bind",
            str(binding.outside),
            binding.inside,
        ]
    for name, value in environment(prepared, proxied=proxied).items():
        arguments += ["--setenv", name, value]
    return [*arguments, "--chdir", "/", "--remount-ro", "/"]


def environment(prepared: Prepared, *, proxied: bool) -> dict[str, str]:
    """The environment of every process within; secrets come later, over the channel."""
    prefix = prepared.interpreter.prefix
    found = {
        "PATH": f"/opt/izzy/bin:{prefix}/bin:/usr/bin" if prefix else "/opt/izzy/bin:/usr/bin",
        "HOME": "/home/user",
        "LANG": "C.UTF-8",
        "TMPDIR": "/tmp",  # noqa: S108  of the sandbox
        "PYTHONPATH": LAYER,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "SSL_CERT_FILE": CERTIFICATES,
        "REQUESTS_CA_BUNDLE": CERTIFICATES,
        "OPENBLAS_NUM_THREADS": "4",
        "OMP_NUM_THREADS": "4",
    }
    if proxied:
        found |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), PROXY)
    if prepared.interpreter.libraries:
        found["LD_LIBRARY_PATH"] = str(prepared.interpreter.libraries)
    return found


@dataclass(slots=True)
class Spawned:
    """A bwrap that was started, and the host's ends: `jobs` is written, the descriptors are read."""

    popen: subprocess.Popen[bytes]
    jobs: socket.socket
    frames: int
    info: int
    stdout: int
    stderr: int


def spawn(prepared: Prepared, limits: Limits, bindings: Sequence[Binding], *, proxied: bool) -> Spawned:
    """Raises OSError. The sandbox dies with the thread that calls this."""
    arguments = (
        "\0".join(sandbox_arguments(prepared, limits, bindings, proxied=proxied)).encode() + b"\0"
    )
    with ExitStack() as ours, ExitStack() as theirs:
        jobs, jobs_inside = socket.socketpair()
        ours.callback(jobs.close)
        theirs.callback(jobs_inside.close)
        ends = {}
        for name in PIPES:
            ends[name] = reading, writing = os.pipe()
            ours.callback(os.close, reading)
            theirs.callback(os.close, writing)
        given = []
        for data in (arguments, prepared.filter):
            given.append(pipe_with(data))
            theirs.callback(os.close, given[-1])
        options = ["--args", str(given[0]), "--seccomp", str(given[1])]
        options += ["--info-fd", str(ends["info"][1])]
        channel = [str(jobs_inside.fileno()), str(ends["frames"][1]), *(["listen"] if proxied else [])]
        python = [str(prepared.interpreter.path), "-I", "-S", "-B", "-X", "utf8", "-c", START, *channel]
        popen = subprocess.Popen(  # noqa: S603  that is what a sandbox is for
            [*prepared.as_user, prepared.bwrap, *options, *python],
            stdin=subprocess.DEVNULL,
            stdout=ends["stdout"][1],
            stderr=ends["stderr"][1],
            pass_fds=[jobs_inside.fileno(), ends["frames"][1], ends["info"][1], *given],
            cwd="/",
            env={},
            start_new_session=True,
            **prepared.popen,
        )
        ours.pop_all()
    return Spawned(popen, jobs, *(ends[name][0] for name in PIPES))


def pipe_with(data: bytes) -> int:
    """A descriptor from which the data can be read. It is small enough for a pipe's buffer."""
    reading, writing = os.pipe()
    with open(writing, "wb") as file:
        file.write(data)
    return reading
