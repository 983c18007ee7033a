"""Which Python runs tools: Izzy's own, or the system's where Izzy's lies in somebody's home, whose name every sandbox could
read in its mount table, or where the sandbox's user cannot read it."""

import os
import re
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path

from .identity import Identity

SYSTEM_PYTHONS = (Path("/usr/bin/python3"),)
SYSTEM_PREFIX = Path("/usr")
OLDEST_MINOR = 11
HOMES = (Path("/home"), Path("/root"))


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`prefix` is the folder to bind for it, None where it is part of /usr/lib and /usr/bin."""

    path: Path
    prefix: Path | None = None
    libraries: Path | None = None


def find_interpreter(identity: Identity) -> Interpreter | None:
    """None where there is no Python that this user can read."""
    own = own_interpreter()
    found = [Interpreter(path.resolve()) for path in SYSTEM_PYTHONS]
    system = [interpreter for interpreter in found if is_recent(interpreter.path)]
    ordered = [*system, own] if own.prefix and lies_in_a_home(own.prefix) else [own, *system]
    return next((interpreter for interpreter in ordered if readable(interpreter, identity)), None)


def is_recent(path: Path) -> bool:
    """Whether it is at least as new as the oldest Python that Izzy runs on, by the name of the program."""
    version = re.fullmatch(r"python3\.(\d+)", path.name)
    return version is not None and int(version[1]) >= OLDEST_MINOR


def lies_in_a_home(folder: Path) -> bool:
    return any(folder.is_relative_to(home) for home in (*HOMES, Path.home().resolve()))


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
