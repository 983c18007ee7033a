"""Files that take a while to make, made once and kept beside the packages instead of by each process."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO


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
