"""Regular expressions in schemas: only such as end in bounded time, whatever the text.

Python's `re` backtracks and holds the interpreter while it does: `(a+)+$` and forty letters would stop the server. What a
pattern can cost is bounded here by the number of ways through it: each repeat of variable length, as often as it stands
within others, chooses among its lengths, but k of them can divide n letters in no more than C(n + k, k) ways.
"""

import math
import re
from dataclasses import dataclass
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MAX_PATTERN_CHARS = 300
MATCHED_CHARS = 200
MOST_BITS = 22.0
"""Of choices one by one: half a second at worst."""
MOST_DIVIDED_BITS = 26.1
"""Of divisions of the text, which are tried much faster: four open repeats, a fifth of a second at worst."""
MANY = 8
OPEN = math.log2(MATCHED_CHARS)
REPEATS = {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}
REFUSED = {codes.GROUPREF, codes.GROUPREF_EXISTS, codes.ASSERT, codes.ASSERT_NOT}


class _Costly(Exception):
    """The message is the end of "which …"."""


@dataclass(frozen=True, slots=True)
class _Ways:
    """The logarithm of how many ways there are through a part: by the lengths of its repeats, of which there are so
    many, and by its alternatives."""

    lengths: float = 0.0
    repeats: int = 0
    alternatives: float = 0.0

    def __add__(self, other: "_Ways") -> "_Ways":
        return _Ways(
            self.lengths + other.lengths,
            self.repeats + other.repeats,
            self.alternatives + other.alternatives,
        )

    @property
    def are_few(self) -> bool:
        divided = math.log2(math.comb(MATCHED_CHARS + self.repeats, self.repeats))
        if self.lengths + self.alternatives <= MOST_BITS:
            return True
        return divided + self.alternatives <= MOST_DIVIDED_BITS


def pattern_problem(pattern: str) -> str:
    """What is wrong with a pattern, as the end of "which …"; "" where it may be used."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"has more than {MAX_PATTERN_CHARS} characters"
    try:
        re.compile(pattern)
        tree = parser.parse(pattern)
        anchored = len(tree) > 0 and tree[0] == (codes.AT, codes.AT_BEGINNING)
        ways = _ways(tree, 1) + (_Ways() if anchored else _Ways(OPEN, 1))
    except (re.error, RecursionError, OverflowError) as error:
        return f"is no regular expression: {error}"
    except _Costly as found:
        return str(found)
    return "" if ways.are_few else "could take very long: use fewer repeats of open length"


def _ways(tree: Any, times: int) -> _Ways:
    """The ways through a pattern that stands within repeats of `times` in all."""
    return sum((_part_ways(code, argument, times) for code, argument in tree), _Ways())


def _part_ways(code: Any, argument: Any, times: int) -> _Ways:
    if code in REFUSED:
        raise _Costly("looks back or ahead, which is not supported")
    if code in REPEATS:
        low, high, inner = argument
        return _repeat_ways(int(low), min(int(high), MATCHED_CHARS), inner, times)
    if code == codes.BRANCH:
        return _branch_ways(argument[1], times)
    if code == codes.SUBPATTERN:
        return _ways(argument[-1], times)
    if code == codes.ATOMIC_GROUP:
        return _ways(argument, times)
    return _Ways()


def _repeat_ways(low: int, high: int, inner: Any, times: int) -> _Ways:
    choices = max(high - low, 0) + 1
    if choices > 1 and times > MANY:
        raise _Costly("has a repeat within a repeat, which can take forever")
    own = _Ways(times * math.log2(choices), times) if choices > 1 else _Ways()
    return own + _ways(inner, times * max(high, 1))


def _branch_ways(branches: list[Any], times: int) -> _Ways:
    if times > MANY and _overlap(branches):
        raise _Costly("has alternatives within a repeat that may begin alike, which can take forever")
    own = _Ways(alternatives=times * math.log2(len(branches)) if _overlap(branches) else 0.0)
    return sum((_ways(branch, times) for branch in branches), own)


def _overlap(branches: list[Any]) -> bool:
    """Whether two alternatives may begin with the same letter; said to be so wherever it is not plain."""
    firsts = [branch[0] if len(branch) else None for branch in branches]
    letters = [first[1] for first in firsts if first is not None and first[0] == codes.LITERAL]
    return len(letters) < len(firsts) or len(set(letters)) < len(letters)
