"""By what a text is recognised again: runs of its words, and those of its words that stand nowhere else."""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

RUN = 5
"""So many words of a text in a row are a quotation of it; a shorter text is quoted as a whole."""
MIN_RUN = 3
"""A text of fewer words is no quotation by itself: only its distinctive words tell it."""
MAX_NEEDLES = 200

_DENSE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
)
_WORD = re.compile(f"[{_DENSE}]|(?:(?![{_DENSE}_])\\w)+")

Run = tuple[str, ...]
Span = tuple[int, int]


def words_of(text: str) -> list[tuple[str, int, int]]:
    """The words of a text with their places, case folded and in one form (NFKC); signs of scripts without spaces
    count as words."""
    found = []
    for match in _WORD.finditer(text):
        word = match.group()
        word = word.lower() if word.isascii() else unicodedata.normalize("NFKC", word).casefold()
        found.append((word, match.start(), match.end()))
    return found


def runs_of(text: str, telling: frozenset[str]) -> set[Run]:
    """The runs of RUN words of a text that hold at least one of the `telling` words; of a shorter text the whole."""
    words = [word for word, _, _ in words_of(text)]
    size = min(RUN, len(words))
    if size < MIN_RUN:
        return set()
    runs = (tuple(words[start : start + size]) for start in range(len(words) - size + 1))
    return {run for run in runs if not telling.isdisjoint(run)}


@dataclass(frozen=True)
class Fragments:
    """`runs` of words and `stems`: beginnings of distinctive words, four letters and more (see `runs_of`)."""

    runs: frozenset[Run] = frozenset()
    stems: frozenset[str] = frozenset()

    @property
    def is_empty(self) -> bool:
        return not self.runs and not self.stems

    def without(self, runs: Collection[Run], stems: Collection[str]) -> "Fragments":
        return Fragments(self.runs - frozenset(runs), self.stems - frozenset(stems))

    @cached_property
    def lengths(self) -> tuple[int, ...]:
        return tuple(sorted({len(run) for run in self.runs}))

    @cached_property
    def _stem_pattern(self) -> re.Pattern[str] | None:
        if not self.stems:
            return None
        ordered = sorted(self.stems, key=len, reverse=True)
        return re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, ordered))})", re.IGNORECASE)

    @cached_property
    def _needles(self) -> tuple[str, ...] | None:
        """Words of which every match holds at least one, to pass over most texts quickly; None where there are many."""
        needles = set(self.stems)
        for run in self.runs:
            if needles.isdisjoint(run):
                needles.add(max(run, key=len))
            if len(needles) > MAX_NEEDLES:
                return None
        return tuple(needles)

    def may_match(self, text: str) -> bool:
        """False only where nothing of the fragments can be in the text, JSON escapes counted as unknown."""
        if self.is_empty:
            return False
        if self._needles is None or "\\u" in text:
            return True
        folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
        return any(needle in folded for needle in self._needles)

    def quoted(self, text: str) -> list[Span]:
        """The places of a text that quote the runs, joined where they touch."""
        words = words_of(text) if self.runs else []
        plain = [word for word, _, _ in words]
        spans: list[Span] = []
        for size in self.lengths:
            spans += [
                (words[start][1], words[start + size - 1][2])
                for start in range(len(words) - size + 1)
                if tuple(plain[start : start + size]) in self.runs
            ]
        return _joined(spans)

    def named(self, text: str) -> list[Span]:
        """The places of distinctive words."""
        if self._stem_pattern is None:
            return []
        text = text if text.isascii() else _same_length_fold(text)
        return [match.span() for match in self._stem_pattern.finditer(text)]

    def holds(self, text: str) -> bool:
        """Whether a text holds any of them; ask `may_match` first, which is quick."""
        return bool(self.named(text) or self.quoted(text))

    def found_in(self, text: str) -> tuple[set[Run], set[str]]:
        """Which of the runs and stems a text holds."""
        if not self.may_match(text):
            return set(), set()
        plain = [word for word, _, _ in words_of(text)]
        runs = {
            run
            for size in self.lengths
            for start in range(len(plain) - size + 1)
            if (run := tuple(plain[start : start + size])) in self.runs
        }
        return runs, {stem for stem in self.stems if any(word.startswith(stem) for word in plain)}


def _same_length_fold(text: str) -> str:
    """Compatibility forms unified sign by sign, so that places stay what they are."""
    return "".join(form if len(form := unicodedata.normalize("NFKC", sign)) == 1 else sign for sign in text)


def _joined(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def merged_spans(*several: Iterable[Span]) -> Iterator[Span]:
    """The spans of several lists in order, joined where they overlap or touch."""
    yield from _joined(span for spans in several for span in spans)
