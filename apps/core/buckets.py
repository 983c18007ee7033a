"""A bucket of tokens: how much may come at once, and how much in the long run."""

import time


class Bucket:
    """Holds `burst` tokens at most and gains `rate` a second; `left` below zero is a debt."""

    def __init__(self, burst: float, rate: float) -> None:
        self._burst, self._rate = burst, rate
        self._at = time.monotonic()
        self.left = burst

    def fill(self) -> float:
        """The tokens there are now."""
        now = time.monotonic()
        self.left = min(self._burst, self.left + (now - self._at) * self._rate)
        self._at = now
        return self.left

    def take(self) -> bool:
        """Take one token; False where there is none."""
        if self.fill() < 1:
            return False
        self.left -= 1
        return True
