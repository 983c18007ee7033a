"""Makes once what all sandboxes of this process share: their user, their Python, the filter, the files inside."""

import base64
import hashlib
import json
import os
import platform
import secrets
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ..store import store_folder
from .identity import Identity, Interpreter, find_interpreter, sandbox_identity
from .inside import PIP_SHIM, PYTHON_SHIM
from .seccomp import MACHINES, build_filter

BWRAP = "bwrap"
SOURCES = Path(__file__).parent / "inside"
COMPILE = """
import base64, importlib.util, json, marshal, sys, sysconfig
pyc = {}
for name, source in json.load(sys.stdin).items():
    code = compile(source, "/opt/izzy/inside/" + name + ".py", "exec", dont_inherit=True)
    pyc[name] = base64.b64encode(importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)).decode()
abi = [sys.implementation.cache_tag, sysconfig.get_config_var("SOABI") or "", sysconfig.get_platform()]
json.dump({"pyc": pyc, "abi": " ".join(abi)}, sys.stdout)
"""
CERTIFICATES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
ETC = {
    "passwd": "user:x:1000:1000::/home/user:/bin/sh\n",
    "group": "user:x:1000:\n",
    "hosts": "127.0.0.1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "ssl/certs/ca-certificates.crt": "",
}


class CannotPrepare(Exception):
    """`hint` says what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """`inside` has etc/ and izzy/; `abi` names what compiled packages depend on."""

    bwrap: str
    as_user: list[
        str
    ]  # the beginning of a command that runs as the sandbox's user, where setpriv can do that
    popen: dict[str, Any]  # the options of `Popen` with which it does, where setpriv cannot
    identity: Identity
    interpreter: Interpreter
    filter: bytes
    inside: Path
    abi: str
    certificates: Path | None


@cache
def prepare() -> Prepared:
    """Raises CannotPrepare; a success is kept for the life of the process."""
    bwrap = shutil.which(BWRAP)
    if bwrap is None:
        hint = "Install it (Debian, Ubuntu: apt install bubblewrap), or set E2B_API_KEY."
        raise CannotPrepare("bubblewrap is not installed.", hint)
    machine = MACHINES.get(platform.machine())
    if machine is None or os.name != "posix":
        hint = "Set E2B_API_KEY: tools then run at E2B."
        raise CannotPrepare(f"The local sandbox does not know {platform.machine()} machines.", hint)
    identity = sandbox_identity()
    interpreter = find_interpreter(identity)
    if interpreter is None:
        hint = "Install the system's Python (Debian, Ubuntu: apt install python3), or run Izzy as an ordinary user."
        message = f"User {identity.uid}, as whom tools run, can read neither Izzy's Python nor /usr/bin/python3."
        raise CannotPrepare(message, hint)
    try:
        inside, abi = _inside(identity, interpreter)
        certificates = _certificates(inside.parent)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        hint = "Look at IZZY_SANDBOX_DIR and IZZY_SANDBOX_UID."
        raise CannotPrepare(f"The sandbox's files could not be made: {error}.", hint) from error
    as_user, popen = list[str](), popen_identity(identity)
    if popen and (setpriv := shutil.which("setpriv")):
        user = ["--reuid", str(identity.uid), "--regid", str(identity.gid)]
        as_user, popen = [setpriv, *user, "--clear-groups", "--inh-caps=-all", "--"], {}
    return Prepared(
        bwrap, as_user, popen, identity, interpreter, build_filter(machine), inside, abi, certificates
    )


def _certificates(folder: Path) -> Path | None:
    """The certificates that the server trusts, maybe more than the system's; a copy where it has a file of its own."""
    named = [os.environ.get(name, "") for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE")]
    found = next((name for name in (*named, *CERTIFICATES) if name and Path(name).is_file()), None)
    if found is None or found in CERTIFICATES:
        return Path(found) if found else None
    data = Path(found).read_bytes()
    copy = folder / f"certificates-{hashlib.sha256(data).hexdigest()[:20]}"
    if not copy.is_file():
        part = copy.with_name(f".{copy.name}-{secrets.token_hex(4)}")
        _write(part, data)
        part.rename(copy)
    return copy


def _inside(identity: Identity, interpreter: Interpreter) -> tuple[Path, str]:
    """The folder bound into every sandbox, under the hash of what made it."""
    sources = {file.stem: file.read_text() for file in sorted(SOURCES.glob("*.py"))}
    python = interpreter.path.stat()
    shims = [PIP_SHIM, PYTHON_SHIM, str(interpreter.path)]
    made_of = json.dumps([sources, ETC, COMPILE, *shims, python.st_size, python.st_mtime_ns])
    folder = store_folder(identity) / "inside" / hashlib.sha256(made_of.encode()).hexdigest()[:20]
    abi = folder / "abi"
    if not abi.is_file():
        _make_inside(folder, sources, identity, interpreter)
    return folder, abi.read_text()


def _make_inside(
    folder: Path, sources: dict[str, str], identity: Identity, interpreter: Interpreter
) -> None:
    """Compiled by the Python that will run it, as the user who will; `abi` says what that Python calls its own."""
    run = subprocess.run(  # noqa: S603  no shell, and nothing of a user
        [interpreter.path, "-I", "-S", "-c", COMPILE],
        input=json.dumps(sources).encode(),
        capture_output=True,
        check=True,
        timeout=30,
        cwd="/",
        env={"LD_LIBRARY_PATH": str(interpreter.libraries)} if interpreter.libraries else {},
        **popen_identity(identity),
    )
    compiled = json.loads(run.stdout)
    part = folder.with_name(f".{folder.name}-{secrets.token_hex(4)}")
    for name, text in ETC.items():
        _write(part / "etc" / name, text.encode())
    for name, code in compiled["pyc"].items():
        _write(part / "izzy" / "inside" / f"{name}.pyc", base64.b64decode(code))
    for name in ("pip", "pip3"):
        _write(part / "izzy" / "bin" / name, f"#!{interpreter.path} -IS\n{PIP_SHIM}".encode(), 0o755)
    for name in ("python", "python3"):
        shim = PYTHON_SHIM.format(python=shlex.quote(str(interpreter.path)))
        _write(part / "izzy" / "bin" / name, shim.encode(), 0o755)
    _write(part / "abi", compiled["abi"].encode())
    for place in (part, *(found for found in part.rglob("*") if found.is_dir())):
        place.chmod(0o755)
    try:
        part.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(part)


def _write(path: Path, data: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def popen_identity(identity: Identity) -> dict[str, Any]:
    """`Popen` options to start a process as this user. Python then copies the whole server's page tables first, which
    takes longer the more memory it has."""
    if not identity.dropped:
        return {}
    return {"user": identity.uid, "group": identity.gid, "extra_groups": []}
