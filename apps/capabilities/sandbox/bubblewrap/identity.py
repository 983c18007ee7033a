"""As whom sandboxes run, and with which Python."""

import os
import re
import stat
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

SYSTEM_PYTHON = Path("/usr/bin/python3")
SYSTEM_PREFIX = Path("/usr")
OLDEST_MINOR = 11
HOMES = (Path("/home"), Path("/root"))


@dataclass(frozen=True, slots=True)
class Identity:
    """`dropped`: the server is root and gives its rights up for the sandbox. bubblewrap run as root would leave /proc/sys
    writable and process limits without effect."""

    uid: int
    gid: int
    dropped: bool

    def may_read(self, path: Path) -> bool:
        """Whether this user gets through every folder above and may read (of a folder: enter) what stands there. Looks at
        owners and modes alone; the probe is what decides."""
        try:
            real = path.resolve(strict=True)
            modes = [(folder.stat(), stat.S_IXOTH) for folder in real.parents]
            found = real.stat()
        except OSError:
            return False
        wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(found.st_mode) else 0)
        return all(self._has(info, bits) for info, bits in [*modes, (found, wanted)])

    def _has(self, info: os.stat_result, bits: int) -> bool:
        if info.st_uid == self.uid:
            bits <<= 6
        elif info.st_gid == self.gid:
            bits <<= 3
        return info.st_mode & bits == bits


def sandbox_identity() -> Identity:
    if os.geteuid() != 0:
        return Identity(os.geteuid(), os.getegid(), dropped=False)
    return Identity(settings.IZZY_SANDBOX_UID, settings.IZZY_SANDBOX_UID, dropped=True)


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`prefix` is the folder to bind for it, None where it is part of /usr/lib and /usr/bin."""

    path: Path
    prefix: Path | None = None
    libraries: Path | None = None


def find_interpreter(identity: Identity) -> Interpreter | None:
    """Izzy's own Python, or the system's where Izzy's lies in somebody's home, whose name every sandbox could read in its
    mount table. None where there is no Python that this user can read."""
    path = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    prefix = Path(sys.base_prefix).resolve()
    ordered = [Interpreter(path)]
    if prefix != SYSTEM_PREFIX:
        shared = bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))
        ordered = [Interpreter(path, prefix, prefix / "lib" if shared else None)]
    system = SYSTEM_PYTHON.resolve()
    version = re.fullmatch(r"python3\.(\d+)", system.name)
    if version is not None and int(version[1]) >= OLDEST_MINOR:
        in_a_home = any(prefix.is_relative_to(home) for home in (*HOMES, Path.home().resolve()))
        ordered.insert(0 if in_a_home and prefix != SYSTEM_PREFIX else 1, Interpreter(system))
    return next((interpreter for interpreter in ordered if readable(interpreter, identity)), None)


def readable(interpreter: Interpreter, identity: Identity) -> bool:
    if not os.path.isfile(interpreter.path) or not identity.may_read(interpreter.path):
        return False
    return interpreter.prefix is None or identity.may_read(interpreter.prefix / "lib")
