"""How often what can wait a moment is done, so that many chats at once leave the processor to what cannot."""

from dataclasses import dataclass


@dataclass(slots=True)
class Share:
    """Hands out times at which to begin, so that all work of one kind takes at most this share of a processor: while that is
    much more than there is to do, nobody waits."""

    share: float
    _free: float = 0.0

    def slot(self, earliest: float, seconds: float) -> float:
        """When work of so many seconds may begin, on the clock of `earliest`."""
        begin = max(earliest, self._free)
        self._free = begin + seconds / self.share
        return begin


RENDERING = Share(0.03)
"""Of the answers under way as HTML, in this process. A page shows their newest words as plain text until then."""
SENDING = 0.00015
"""Seconds that it takes to send on what was rendered."""
