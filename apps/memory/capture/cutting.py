"""Cutting what was said into windows of ~500 tokens that share ~100 with the one before."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from .said import Segment

WINDOW_TOKENS = 500
OVERLAP_TOKENS = 100


@dataclass(slots=True)
class Cut:
    """A window in the making. `fresh` segments are those that no window before it holds."""

    segments: list[Segment] = field(default_factory=list)

    @property
    def tokens(self) -> int:
        return sum(segment.tokens for segment in self.segments)

    @property
    def has_fresh(self) -> bool:
        return any(not segment.seen for segment in self.segments)


def cut(start: Sequence[Segment], fresh: Iterable[Segment]) -> list[Cut]:
    """Windows that go on from `start` (the segments of one still open, or an overlap) with what is new.

    All but the last are full. Each but the first begins with the end of the one before, marked as seen.
    """
    windows = [Cut(list(start))]
    for segment in fresh:
        last = windows[-1]
        if last.has_fresh and last.tokens + segment.tokens > WINDOW_TOKENS:
            last = Cut(overlap(last.segments))
            windows.append(last)
        last.segments.append(segment)
    return [window for window in windows if window.has_fresh]


def overlap(segments: Sequence[Segment]) -> list[Segment]:
    """The last segments of about OVERLAP_TOKENS together, as the next window shows them again."""
    kept: list[Segment] = []
    total = 0
    for segment in reversed(segments):
        total += segment.tokens
        if total > OVERLAP_TOKENS and kept:
            break
        kept.append(replace(segment, seen=True))
    return kept[::-1]
