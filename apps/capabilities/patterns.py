"""Regular expressions in schemas: only such as end in bounded time, whatever the text.

Python's `re` backtracks and holds the interpreter while it does: `(a+)+$` and forty letters would stop the server. What a
pattern can cost is bounded here by its number of choices: each repeat of variable length, as often as it stands within
others, chooses among its lengths.
"""

import math
import re
from re import _constants as codes  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

MAX_PATTERN_CHARS = 300
MATCHED_CHARS = 200
MOST_BITS = 31.0
MANY = 8
OPEN = math.log2(MATCHED_CHARS)
REPEATS = {codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT}
REFUSED = {codes.GROUPREF, codes.GROUPREF_EXISTS, codes.ASSERT, codes.ASSERT_NOT}


class _Costly(Exception):
    """The message is the end of "which …"."""


def pattern_problem(pattern: str) -> str:
    """What is wrong with a pattern, as the end of "which …"; "" where it may be used."""
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"has more than {MAX_PATTERN_CHARS} characters"
    try:
        re.compile(pattern)
        tree = parser.parse(pattern)
        anchored = len(tree) > 0 and tree[0] == (codes.AT, codes.AT_BEGINNING)
        bits = _bits(tree, 1) + (0 if anchored else OPEN)
    except (re.error, RecursionError, OverflowError) as error:
        return f"is no regular expression: {error}"
    except _Costly as found:
        return str(found)
    return "" if bits <= MOST_BITS else "could take very long: use fewer repeats of open length"


def _bits(tree: Any, times: int) -> float:
    """The logarithm of how many ways there are through a pattern that stands within repeats of `times` in all."""
    return sum(_part_bits(code, argument, times) for code, argument in tree)


def _part_bits(code: Any, argument: Any, times: int) -> float:
    if code in REFUSED:
        raise _Costly("looks back or ahead, which is not supported")
    if code in REPEATS:
        low, high, inner = argument
        return _repeat_bits(int(low), min(int(high), MATCHED_CHARS), inner, times)
    if code == codes.BRANCH:
        return _branch_bits(argument[1], times)
    if code == codes.SUBPATTERN:
        return _bits(argument[-1], times)
    if code == codes.ATOMIC_GROUP:
        return _bits(argument, times)
    return 0.0


def _repeat_bits(low: int, high: int, inner: Any, times: int) -> float:
    choices = max(high - low, 0) + 1
    if choices > 1 and times > MANY:
        raise _Costly("has a repeat within a repeat, which can take forever")
    return times * math.log2(choices) + _bits(inner, times * max(high, 1))


def _branch_bits(branches: list[Any], times: int) -> float:
    if times > MANY and _overlap(branches):
        raise _Costly("has alternatives within a repeat that may begin alike, which can take forever")
    own = 0.0 if _overlap(branches) is False else times * math.log2(len(branches))
    return own + sum(_bits(branch, times) for branch in branches)


def _overlap(branches: list[Any]) -> bool:
    """Whether two alternatives may begin with the same letter; said to be so wherever it is not plain."""
    firsts = [branch[0] if len(branch) else None for branch in branches]
    letters = [first[1] for first in firsts if first is not None and first[0] == codes.LITERAL]
    return len(letters) < len(firsts) or len(set(letters)) < len(letters)
