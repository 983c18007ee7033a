"""How a command can fail: a sentence for people and an exit code for programs."""

from enum import IntEnum
from typing import Any


class Exit(IntEnum):
    """The exit codes; docs/cli.md lists them."""

    OK = 0
    FAILURE = 1  # the server refused, or what was asked for failed
    USAGE = 2  # the command line does not make sense
    SIGNED_OUT = 3  # no token, one that is not accepted, or one that lacks the scope
    NOT_FOUND = 4
    UNREACHABLE = 5  # no server, or something that is not Izzy
    WAITING = 6  # a turn or build waits for an answer that nobody was there to give
    INTERRUPTED = 130  # Ctrl-C


class Problem(Exception):
    """An error that ends a command. `code` and `extra` are the server's, where it answered."""

    def __init__(
        self,
        message: str,
        exit_code: Exit = Exit.FAILURE,
        *,
        code: str = "",
        extra: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.exit_code = exit_code
        self.code = code
        self.extra = extra or {}


class ConnectionLost(Problem):
    """The connection broke while an answer was being read: the server may have gone on."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.UNREACHABLE)


def missing(what: str) -> Problem:
    """A command line that lacks something."""
    return Problem(what, Exit.USAGE)
