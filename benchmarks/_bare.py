"""The connections without Django to both databases have in common what they time of inserts."""

import statistics
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

from benchmarks.report import Timing, measure, timed


class Bare(ABC):
    """A connection to the database at hand, without Django."""

    def __enter__(self) -> Self:
        return self

    @abstractmethod
    def __exit__(self, *exc: object) -> None: ...

    def insert_bulk(self, texts: Sequence[str]) -> float:
        """Milliseconds per row: text, vector and full text of a batch in one transaction; the median of five."""
        times = []
        for _ in range(5):
            self._make_table()
            times.append(timed(lambda: self._insert(list(enumerate(texts, 1))))[1] / len(texts))
        return statistics.median(times)

    def insert_single(self, texts: Sequence[str]) -> Timing:
        """The same, one transaction per row."""
        self._make_table()
        return measure(lambda n: self._insert([(n + 1, texts[n])]), len(texts))

    @abstractmethod
    def _make_table(self) -> None: ...

    @abstractmethod
    def _insert(self, rows: list[tuple[int, str]]) -> None: ...
