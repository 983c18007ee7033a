"""How many frames one socket may send."""

import time

from apps.core.errors import Throttled

FRAMES_PER_SECOND = 10.0
FRAMES_BURST = 60
FRAMES_REFUSED = 600
"""So many frames beyond the allowance, none in between within it, end the socket."""


class Allowance:
    """A bucket of tokens: so many frames at once, so many per second in the long run."""

    def __init__(self) -> None:
        self._left = float(FRAMES_BURST)
        self._at = time.monotonic()
        self._refused = 0

    @property
    def flooded(self) -> bool:
        """Whether the client does not care that it is told to wait."""
        return self._refused >= FRAMES_REFUSED

    def take(self) -> None:
        """Raises Throttled when nothing is left."""
        now = time.monotonic()
        self._left = min(FRAMES_BURST, self._left + (now - self._at) * FRAMES_PER_SECOND)
        self._at = now
        if self._left < 1:
            self._refused += 1
            raise Throttled("Too many frames. Wait a moment.", retry_after=1)
        self._left -= 1
        self._refused = 0
