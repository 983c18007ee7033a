"""Whether an Izzy runs with a data directory: each of its processes holds a lock there for its life, which the system takes
back however the process ends."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path

from django.core.management.base import CommandError

RUNNING = ".running"
_held: list[TextIOWrapper] = []


class Running(Exception):
    """An Izzy runs with this data directory."""


def data_directory_hold(data: Path) -> TextIOWrapper | None:
    """Until the result is closed, or the process ends, it counts as one that runs with the data directory; None where nothing
    can be written there. Raises CommandError where somebody is just putting a backup in its place."""
    try:
        file = _opened(data)
    except OSError:  # then nothing is put in its place either
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise CommandError(
            f"A backup is just being put into {data}. Start again when it is there."
        ) from error
    _held.append(file)
    return file


@contextmanager
def data_directory_alone(data: Path) -> Iterator[None]:
    """Nobody runs with the data directory inside. Raises Running."""
    with _opened(data) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise Running(f"Izzy runs with {data}. Stop it first.") from error
        yield


def _opened(data: Path) -> TextIOWrapper:
    return open(os.open(data / RUNNING, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")
