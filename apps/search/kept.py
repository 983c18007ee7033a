"""Files that take a while to make, made once and kept beside the packages instead of by each process."""

import logging
import os
import sys
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

logger = logging.getLogger(__name__)


def kept_file(name: str) -> Path:
    """Where it is kept. The name says what it was made of and how, so that what was made otherwise is not found."""
    return Path(sys.prefix) / f"izzy-{name}"


def keep(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write the file whole or not at all. Raises OSError where the packages are somebody else's, or there is no room."""
    written = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with written.open("wb") as file:
            write(file)
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
    except (OSError, ValueError, EOFError, zipfile.BadZipFile):
        logger.exception("%s cannot be read: it is made anew", path.name)
    made = make()
    try:
        keep(path, lambda file: np.savez(file, allow_pickle=False, **made))
    except OSError:
        logger.info("%s cannot be kept: each process makes it anew", path.name)
    return made
