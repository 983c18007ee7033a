"""Regular expressions in schemas, matched by RE2 in time linear in the text.

Python's `re` backtracks and holds the interpreter meanwhile, so one pattern could stop the server. RE2 knows `\\w`, `\\d`,
`\\s` and `\\b` for ASCII alone, and the Unicode tables are too large to repeat (`\\w{1,64}` would be 90,000 instructions). So
each character of the text stands between two marks that say of which kind it is: `\\w` looks at the mark before the
character, and `\\b`, which looks at its neighbours, finds marks on both sides.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

MAX_PATTERN_CHARS = 300
MAX_REPEAT = 1000
MAX_MATCHED_CHARS = 2000
MAX_MEMORY = 1 << 20  # bytes, of which a third is for the program of a pattern
NO_LIBRARY = "cannot be matched on this machine: there is no google-re2 for it, so patterns are not supported here"

DIGIT, LETTER, SPACE, NEWLINE, OTHER = (
    "9",
    "x",
    " ",
    "\n",
    "-",
)  # as RE2's own \b and ^ want the marks to be
MARKS = {"d": {DIGIT}, "w": {DIGIT, LETTER}, "s": {SPACE, NEWLINE}}
ALL = {DIGIT, LETTER, SPACE, NEWLINE, OTHER}
CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}

_REPEAT = re.compile(r"([*+?]|\{(?:(\d{1,9})(?:,(\d{0,9}))?|,(\d{1,9}))\})([?+]?)")
_GROUP = re.compile(r"\?(?:P?<[A-Za-z_]\w{0,60}>|([a-zA-Z]*(?:-[a-zA-Z]+)?)([:)]))")
_CODE = re.compile(r"u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|u\{([0-9A-Fa-f]{1,6})\}|U([0-9A-Fa-f]{8})")
_PROPERTY = re.compile(r"[pP](?:[A-Za-z]|\{\^?[A-Za-z_]{1,40}\})")


class PatternRefused(Exception):
    """The message is the end of "which …"."""


def pattern_problem(pattern: str) -> str:
    """The error in a pattern, as the end of "which …"; "" where it may be used."""
    try:
        matcher(pattern)
    except PatternRefused as refusal:
        return str(refusal)
    return ""


@lru_cache(maxsize=256)
def matcher(pattern: str) -> Callable[[str], bool]:
    """The function that looks for a pattern anywhere in a text of at most `MAX_MATCHED_CHARS`. Raises PatternRefused."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise PatternRefused(f"has more than {MAX_PATTERN_CHARS} characters")
    if find_spec("re2") is None:  # no wheel for this platform
        raise PatternRefused(NO_LIBRARY)
    import re2

    options = re2.Options()
    options.log_errors, options.never_capture, options.max_mem = False, True, MAX_MEMORY
    translated = _Translation(pattern).result()
    try:
        found: Any = re2.compile(rf"\A(?s:\C.\C)*?(?:{translated})".encode("utf-8", "replace"), options)
    except re2.error as error:
        raise PatternRefused(_reason(error)) from error
    return lambda text: found.match(_marked(text)) is not None


def _reason(error: Exception) -> str:
    reason = (
        error.args[0].decode("utf-8", "replace")
        if error.args and isinstance(error.args[0], bytes)
        else ""
    )
    if "repetition size" in reason:
        return f"repeats a part more than {MAX_REPEAT:,} times"
    if "too large" in reason or "nesting" in reason:
        return "is too large: use fewer or smaller repeats"
    return f"is no regular expression: {reason.split(':')[0] or 'it cannot be read'}"


def _marked(text: str) -> bytes:
    """The text with a mark before and behind each character."""
    return "".join(f"{(mark := _mark(sign))}{sign}{mark}" for sign in text).encode("utf-8", "replace")


def _mark(sign: str) -> str:
    if sign == "\n":
        return NEWLINE
    if sign.isspace():
        return SPACE
    if sign.isdecimal():
        return DIGIT
    return LETTER if sign == "_" or sign.isalnum() or unicodedata.category(sign)[0] == "M" else OTHER


class _Translation:
    """One reading of a pattern, from left to right, into what RE2 matches with marked text."""

    def __init__(self, pattern: str) -> None:
        self.pattern, self.at, self.open = pattern, 0, 0

    def result(self) -> str:
        parts = []
        while self.at < len(self.pattern):
            parts.append(self._part())
            self.open += parts[-1].endswith(":")
            self.open -= parts[-1] == ")"
            if self.open < 0:
                raise PatternRefused("is no regular expression: unexpected )")
        return "".join(parts)

    def _part(self) -> str:
        if self.pattern[self.at] in "*+?{" and (found := _REPEAT.match(self.pattern, self.at)):
            return self._repeat(found)
        match sign := self._next():
            case "|" | ")" | "^" | "$":
                return sign
            case ".":
                return r"(?:\C.\C)"
            case "(":
                return self._group()
            case "[":
                return self._class()
            case "\\":
                return self._escape()
        return _literal(sign)

    def _next(self) -> str:
        if self.at >= len(self.pattern):
            raise PatternRefused("is no regular expression: it ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def _repeat(self, found: re.Match[str]) -> str:
        self.at = found.end()
        whole, low, high, upto, kind = found.groups()
        if kind == "+":
            raise PatternRefused("has a possessive repeat, which is not supported")
        if whole in "*+?":
            return f"{whole}{kind}"
        if any(int(number) > MAX_REPEAT for number in (low, high, upto) if number):
            raise PatternRefused(f"repeats a part more than {MAX_REPEAT:,} times")
        return f"{{0,{upto}}}{kind}" if upto else f"{whole}{kind}"

    def _group(self) -> str:
        if not self.pattern.startswith("?", self.at):
            return "(?:"
        if self.pattern.startswith(("?=", "?!", "?<=", "?<!"), self.at):
            raise PatternRefused("looks ahead or back, which is not supported")
        found = _GROUP.match(self.pattern, self.at)
        flags = found[1] if found and found[2] else ""
        if found is None or set(flags) - set("imsu-"):
            raise PatternRefused("has a kind of group that is not supported")
        self.at = found.end()
        return f"(?{flags.replace('u', '').removesuffix('-')}{found[2]}" if found[2] else "(?:"

    def _escape(self) -> str:
        """Translates an escape outside a class."""
        kind = self._next()
        if kind.lower() in MARKS:
            return f"(?:[{_written(_meant(kind))}](?s:.)\\C)"
        if kind in "bBA":
            return f"\\{kind}"
        if kind in "zZ":
            return r"\z"
        if kind in "123456789" or (kind == "k" and self.pattern.startswith("<", self.at)):
            raise PatternRefused("refers back to what was matched, which is not supported")
        if found := _PROPERTY.match(self.pattern, self.at - 1):
            self.at = found.end()
            return rf"(?:\C\{found[0]}\C)"
        return _literal(self._sign())

    def _sign(self) -> str:
        """The character that an escape stands for; the sign behind the backslash was read."""
        kind = self.pattern[self.at - 1]
        if found := _CODE.match(self.pattern, self.at - 1):
            self.at = found.end()
            number = int(next(filter(None, found.groups())), 16)
            second = re.compile(r"\\u([dD][c-fC-F][0-9A-Fa-f]{2})").match(self.pattern, self.at)
            if 0xD800 <= number < 0xDC00 and second:
                self.at = second.end()
                number = 0x10000 + (number - 0xD800) * 0x400 + int(second[1], 16) - 0xDC00
            if number > 0x10FFFF or 0xD800 <= number < 0xE000:
                raise PatternRefused("names a character that does not exist")
            return chr(number)
        if (
            kind == "c"
            and self.pattern[self.at : self.at + 1].isascii()
            and self.pattern[self.at :][:1].isalpha()
        ):
            return chr(ord(self._next()) % 32)
        if kind in CONTROLS:
            return CONTROLS[kind]
        if kind.isalnum():
            raise PatternRefused(f"has the escape \\{kind}, which is not known")
        return kind

    def _class(self) -> str:
        """A character class: some of the signs, or of the kinds that marks say."""
        negated = self.pattern.startswith("^", self.at)
        self.at += negated
        items: list[str] = []
        kinds: list[str] = []
        first = True
        while first or not self.pattern.startswith("]", self.at):
            first = False
            low = self._member(kinds, items)
            if (
                low
                and self.pattern.startswith("-", self.at)
                and self.pattern[self.at + 1 : self.at + 2] != "]"
            ):
                self.at += 1
                high = self._member(None, None)
                if low > high:
                    raise PatternRefused(f"is no regular expression: the range {low}-{high} is empty")
                items.append(f"{_code(low)}-{_code(high)}")
            elif low:
                items.append(_code(low))
        self.at += 1
        listed = "".join(items)
        if not negated:
            ways = [rf"[{_written(_meant(kind))}](?s:.)\C" for kind in kinds] + (
                [rf"\C[{listed}]\C"] if items else []
            )
            return f"(?:{'|'.join(ways)})"
        marks = ALL.intersection(*(ALL - _meant(kind) for kind in kinds))
        sign = f"[^{listed}]" if items else "(?s:.)"
        return rf"(?:[{_written(marks)}]{sign}\C)" if marks else r"(?:[^\x00-\x{10FFFF}])"

    def _member(self, kinds: list[str] | None, items: list[str] | None) -> str:
        """The next sign of a class; "" for a kind or a property, which are added to the lists."""
        if (sign := self._next()) != "\\":
            return sign
        kind = self._next()
        if kind == "b":
            return "\b"
        if found := _PROPERTY.match(self.pattern, self.at - 1):
            self.at = found.end()
        if kind.lower() not in MARKS and not found:
            return self._sign()
        if kinds is None or items is None:
            raise PatternRefused("is no regular expression: a range ends in a kind of characters")
        (items if found else kinds).append(f"\\{found[0]}" if found else kind)
        return ""


def _meant(kind: str) -> set[str]:
    return MARKS[kind] if kind.islower() else ALL - MARKS[kind.lower()]


def _written(marks: set[str]) -> str:
    return "".join(sorted(map(_code, marks)))


def _code(sign: str) -> str:
    if 0xD800 <= ord(sign) < 0xE000:
        raise PatternRefused("names a character that does not exist")
    return rf"\x{{{ord(sign):x}}}"


def _literal(sign: str) -> str:
    return rf"(?:\C{_code(sign)}\C)"
