"""Waiting for a server that went away in the middle of something, as where it starts anew."""

import time
from collections.abc import Callable

from izzy_cli.errors import ConnectionLost, Exit, Problem

RESTART_SECONDS = 60
"""How long a server that does not answer may take to start anew."""
FIRST_PAUSE, LONGEST_PAUSE = 0.2, 2.0
WAITS = 60
"""So often it is waited while nothing new comes, also where the server answers in between."""
BROKEN = "The connection to Izzy broke; trying to get it back …"


class Patience:
    """For one thing that is followed; `say` is told when the waiting begins. A server that never answered is not waited for."""

    def __init__(self, say: Callable[[str], None], *, heard: bool = False) -> None:
        self._say = say
        self._heard = heard
        self._since: float | None = None
        self._pause = 0.0
        self._waits = 0

    def answered(self) -> None:
        """The server is there."""
        self._heard, self._since = True, None

    def came(self) -> None:
        """Something new came."""
        self.answered()
        self._waits = 0

    @property
    def waited(self) -> bool:
        """Whether something broke since anything new came."""
        return self._waits > 0

    def wait(self, problem: Problem) -> None:
        """A while; raises the problem where it is another, or the server was away for too long."""
        now = time.monotonic()
        away = 0.0 if self._since is None else now - self._since
        unknown = not self._heard and not isinstance(problem, ConnectionLost)
        if problem.exit_code != Exit.UNREACHABLE or unknown:
            raise problem
        if away > RESTART_SECONDS or self._waits == WAITS:
            raise problem
        if self._since is None:
            self._heard, self._since, self._pause = True, now, FIRST_PAUSE
        if not self._waits:
            self._say(BROKEN)
        self._waits += 1
        time.sleep(self._pause)
        self._pause = min(self._pause * 1.5, LONGEST_PAUSE)
