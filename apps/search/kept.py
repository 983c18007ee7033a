"""Files that take a while to make, made once and kept beside the packages instead of by each process."""

import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import get_ident
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from apps.core.errors import DAMAGED

logger = logging.getLogger(__name__)

UNREADABLE = (*DAMAGED, KeyError)
"""The errors of reading what is damaged, or has not what is looked for in it."""


def kept_file(name: str) -> Path:
    """Where it is kept. The name says what it was made of and how, so that what was made otherwise is not found."""
    return Path(sys.prefix) / f"izzy-{name}"


def keep(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write the file whole or not at all. Raises OSError where the packages are somebody else's, or there is no room."""
    written = path.with_name(f"{path.name}.{os.getpid()}.{get_ident()}")
    try:
        with written.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())  # else the power may fail between an empty file and its name
        written.replace(path)
    finally:
        written.unlink(missing_ok=True)


def arrays_kept(
    path: Path, make: Callable[[], Mapping[str, NDArray[Any]]]
) -> Mapping[str, NDArray[Any]]:
    """The arrays by name in the file, made and kept where there is none or it cannot be read."""
    try:
        with np.load(path) as kept:
            return dict(kept)
    except FileNotFoundError:
        pass
    except UNREADABLE:
        logger.exception("%s cannot be read: it is made anew", path.name)
    made = make()
    try:
        keep(path, lambda file: np.savez(file, allow_pickle=False, **made))
    except OSError:
        logger.info("%s cannot be kept: each process makes it anew", path.name)
    return made


def array_kept(path: Path, make: Callable[[], NDArray[Any]]) -> NDArray[Any]:
    """The one array in the file, mapped so that processes share it; made and kept where there is none or it cannot be read.
    Where it cannot be kept, each process has its own."""
    try:
        return _mapped(path)
    except FileNotFoundError:
        pass
    except (OSError, ValueError, EOFError):
        logger.exception("%s cannot be read: it is made anew", path.name)
    made = make()
    try:
        keep(path, lambda file: np.save(file, made))
    except OSError:
        logger.info("%s cannot be kept: each process holds it by itself", path.name)
        return made
    return _mapped(path)


def _mapped(path: Path) -> NDArray[Any]:
    mapped: NDArray[Any] = np.load(path, mmap_mode="r")
    return mapped
