"""The cost of rendering a text, estimated in one pass over its lines.

Links without marks are looked for by patterns that begin anew at every place where one might stand and read on to the end of
the line; a table's row of one sign becomes as many cells as the table has columns. A text of ten thousand characters
can so cost a minute, and an answer under way is rendered on the loop that serves everybody.
"""

import re

MAX_LINK_WORK = 2_000_000
MAX_LINKS = 3_000
"""Places where a link may begin, times the length of their line, and in all; a third of a second."""
MAX_CELLS = 4_000
"""Of all tables of a text; a tenth of a second."""
MAX_SIGNS = 5_000
"""Lines, and signs that markup may begin with; a tenth of a second, or two where each opens a bracket. An answer of ten
thousand words has half of them."""

_LINK = re.compile(r"//|mailto:|@|\w\.(?=\w)", re.IGNORECASE)
_DELIMITERS = re.compile(r"[\s>*+\-|:\d.)]*\Z")
_SIGN = re.compile(r"[*_~`\[\]<>&\\#+-]|\d[.)]")
_FENCE = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)")


def markup_found(text: str) -> bool:
    """Whether the markup of the text can be looked for at all."""
    return len(text) <= MAX_SIGNS or _signs(text) <= MAX_SIGNS


def _signs(text: str) -> float:
    """At least so many, since of code only what is fenced at the beginning of its lines is passed over."""
    found, fence = 0.0, ""
    for line in text.split("\n"):
        found += 0.1 if fence else 1
        mark = _FENCE.fullmatch(line)
        if fence:
            if mark and line.strip().strip(fence[0]) == "" and line.strip().startswith(fence):
                fence = ""
        elif mark:
            fence = mark[1] or mark[2]
        else:
            found += len(_SIGN.findall(line))
    return found


def links_found(text: str) -> bool:
    """Whether links without marks can be looked for."""
    places = [(len(_LINK.findall(line)), len(line)) for line in text.split("\n")]
    few = sum(count for count, _ in places) <= MAX_LINKS
    return few and sum(count * length for count, length in places) <= MAX_LINK_WORK


def tables_found(text: str) -> bool:
    """Whether the tables of the text can be made."""
    return _cells(text) <= MAX_CELLS


def _cells(text: str) -> int:
    """At most so many."""
    found = columns = 0
    for line in text.split("\n"):
        if not line.strip():
            columns = 0
        elif "-" in line and "|" in line and _DELIMITERS.match(line):
            columns += line.count("|") + 1
        else:
            found += columns
    return found
