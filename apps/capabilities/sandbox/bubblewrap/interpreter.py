"""Which Python runs tools: Izzy's own, and where the sandbox's user cannot read that one, the system's."""

import os
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from .identity import Identity

SYSTEM_PYTHONS = (Path("/usr/bin/python3"),)
SYSTEM_PREFIX = Path("/usr")


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`prefix` is the folder to bind for it, None where it is part of /usr/lib and /usr/bin."""

    path: Path
    prefix: Path | None = None
    libraries: Path | None = None


def find_interpreter(identity: Identity) -> Interpreter | None:
    """None where there is no Python that this user can read."""
    own = own_interpreter()
    if readable(own, identity):
        return own
    for path in SYSTEM_PYTHONS:
        found = Interpreter(path.resolve())
        if readable(found, identity):
            return found
    return None


def own_interpreter() -> Interpreter:
    path = Path(getattr(sys, "_base_executable", "") or sys.executable).resolve()
    prefix = Path(sys.base_prefix).resolve()
    if prefix == SYSTEM_PREFIX:
        return Interpreter(path)
    shared = bool(sysconfig.get_config_var("Py_ENABLE_SHARED"))
    return Interpreter(path, prefix, prefix / "lib" if shared else None)


def readable(interpreter: Interpreter, identity: Identity) -> bool:
    if not os.path.isfile(interpreter.path) or not identity.may_read(interpreter.path):
        return False
    return interpreter.prefix is None or identity.may_read(interpreter.prefix / "lib")
